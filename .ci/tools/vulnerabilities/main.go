// Command vulnerabilities reads what `govulncheck -format json` says of one or
// more programs and compares the vulnerabilities whose code is reached with a
// list of known ones. It fails on one that is not listed and on a listed one
// that is gone.
//
//	govulncheck -format json ./... | vulnerabilities -known vulnerabilities.txt
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	known := flag.String("known", "", "file with a line for each known vulnerability: its ID, then why it cannot hurt")
	flag.Parse()
	if err := run(*known, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vulnerabilities: error:", err)
		os.Exit(1)
	}
}

func run(known string, in io.Reader, out io.Writer) error {
	text, err := os.ReadFile(known)
	if err != nil {
		return fmt.Errorf("read the known vulnerabilities: %w", err)
	}
	reasons, err := parseKnown(string(text))
	if err != nil {
		return fmt.Errorf("read %s: %w", known, err)
	}
	reached, scans, err := readFindings(in)
	if err != nil {
		return err
	}
	if scans == 0 {
		return errors.New("the input holds no scan")
	}
	fmt.Fprintf(out, "%d scans, %d vulnerabilities reached, %d of them known\n", scans, len(reached), len(reasons))
	return compare(reasons, reached)
}

// message is one object of govulncheck's stream; see its internal/govulncheck.
type message struct {
	Config  *struct{}
	Finding *struct {
		OSV          string
		FixedVersion string `json:"fixed_version"`
		Trace        []struct {
			Module, Version, Package, Function string
		}
	}
}

// readFindings gives, by ID, one line on each vulnerability with a function
// that is called, and how many scans the stream holds.
func readFindings(in io.Reader) (reached map[string]string, scans int, err error) {
	reached = map[string]string{}
	stream := json.NewDecoder(in)
	for {
		var m message
		if err := stream.Decode(&m); errors.Is(err, io.EOF) {
			return reached, scans, nil
		} else if err != nil {
			return nil, 0, fmt.Errorf("read govulncheck's output: %w", err)
		}
		if m.Config != nil {
			scans++
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" {
			at := f.Trace[0]
			reached[f.OSV] = fmt.Sprintf("%s@%s: %s.%s, fixed in %s", at.Module, at.Version, at.Package, at.Function, f.FixedVersion)
		}
	}
}

// parseKnown reads "ID reason" lines; # starts a comment line.
func parseKnown(text string) (map[string]string, error) {
	reasons := map[string]string{}
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(id, "GO-") || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("line %d: want an ID and a reason, got %q", number+1, line)
		}
		reasons[id] = reason
	}
	return reasons, nil
}

// compare names every difference between what is listed and what is reached.
func compare(reasons, reached map[string]string) error {
	var problems []error
	for _, id := range slices.Sorted(maps.Keys(reached)) {
		if _, listed := reasons[id]; !listed {
			problems = append(problems, fmt.Errorf("%s is reached: %s", id, reached[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(reasons)) {
		if _, found := reached[id]; !found {
			problems = append(problems, fmt.Errorf("%s is listed and no longer reached: take it off the list", id))
		}
	}
	return errors.Join(problems...)
}
