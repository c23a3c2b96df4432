package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// hostSources collects the host's own apt sources for a suite and its updates
// and security suites, as deb822 paragraphs. "" if the host has none: then
// mmdebstrap's defaults serve.
func hostSources(etc, suite string) (string, error) {
	files := []string{filepath.Join(etc, "sources.list")}
	more, err := os.ReadDir(filepath.Join(etc, "sources.list.d"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read apt sources: %w", err)
	}
	for _, e := range more {
		if ext := filepath.Ext(e.Name()); ext == ".list" || ext == ".sources" {
			files = append(files, filepath.Join(etc, "sources.list.d", e.Name()))
		}
	}
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read apt sources: %w", err)
		}
		if filepath.Ext(file) == ".sources" {
			found = append(found, paragraphsFor(string(data), suite)...)
		} else {
			found = append(found, linesFor(string(data), suite)...)
		}
	}
	return strings.Join(found, "\n"), nil
}

// paragraphsFor picks deb822 paragraphs for the suite, cut down to it.
func paragraphsFor(text, suite string) []string {
	var found []string
	for _, paragraph := range strings.Split(text, "\n\n") {
		fields := map[string]string{}
		last := ""
		for line := range strings.Lines(paragraph) {
			line = strings.TrimRight(line, " \t\r\n")
			switch {
			case line == "" || line[0] == '#':
			case line[0] == ' ' || line[0] == '\t':
				fields[last] += "\n" + line
			default:
				name, value, _ := strings.Cut(line, ":")
				last = strings.ToLower(name)
				fields[last] = strings.TrimSpace(value)
			}
		}
		suites := slices.DeleteFunc(strings.Fields(fields["suites"]), func(s string) bool { return !isSuite(s, suite) })
		types := slices.Contains(strings.Fields(fields["types"]), "deb")
		if !types || len(suites) == 0 || strings.EqualFold(fields["enabled"], "no") {
			continue
		}
		out := "Types: deb\nURIs: " + fields["uris"] + "\nSuites: " + strings.Join(suites, " ") + "\nComponents: " + fields["components"] + "\n"
		if key := fields["signed-by"]; key != "" {
			out += "Signed-By: " + key + "\n"
		}
		found = append(found, out)
	}
	return found
}

// linesFor turns one-line entries for the suite into paragraphs.
func linesFor(text, suite string) []string {
	var found []string
	scan := bufio.NewScanner(strings.NewReader(text))
	for scan.Scan() {
		line, _, _ := strings.Cut(scan.Text(), "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		signedBy := ""
		rest = strings.TrimSpace(rest)
		if options, after, ok := strings.Cut(rest, "]"); ok && rest[0] == '[' {
			rest = after
			for _, option := range strings.Fields(options[1:]) {
				if key, ok := strings.CutPrefix(option, "signed-by="); ok {
					signedBy = "Signed-By: " + key + "\n"
				}
			}
		}
		words := strings.Fields(rest)
		if len(words) < 3 || !isSuite(words[1], suite) {
			continue
		}
		found = append(found, fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: %s\n%s",
			words[0], words[1], strings.Join(words[2:], " "), signedBy))
	}
	return found
}

func isSuite(name, suite string) bool {
	return name == suite || name == suite+"-updates" || name == suite+"-security"
}

// aptOptions are the settings of the host that decide whether its mirrors can
// be reached and are accepted.
var aptOptions = []string{
	"Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::Check-Valid-Until",
	"Acquire::Check-Date", "Acquire::Retries",
}

// hostAptOptions reads those settings as lines of an apt configuration.
func hostAptOptions(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "apt-config", "dump")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	data, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%w: apt is not installed", ErrBuilder)
	}
	if err != nil {
		return "", fmt.Errorf("%w: read apt's configuration: %w", ErrBuilder, err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(data)) {
		name, _, _ := strings.Cut(line, " ")
		for _, want := range aptOptions {
			if name == want || strings.HasPrefix(name, want+"::") {
				kept.WriteString(line)
			}
		}
	}
	return kept.String(), nil
}
