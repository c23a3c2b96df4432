package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/workspace"
)

// maxShown is how many files a person wants to see listed.
const maxShown = 20

// summary is what a person wants to know in a few lines. What is in a temporary
// workspace is gone by now.
func summary(r *runtime.Result, temporary bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "gaol: %s\n", strings.Join(append([]string{howText(r)}, usageTexts(r)...), " · "))
	b.WriteString(filesText(r.Files, temporary))
	if r.FilesNote != "" {
		fmt.Fprintf(&b, "gaol: note: %s\n", lineText(r.FilesNote))
	}
	if r.SetIDStripped > 0 {
		fmt.Fprintf(&b, "gaol: note: set-id bits of %d files were removed\n", r.SetIDStripped)
	}
	return b.String()
}

func howText(r *runtime.Result) string {
	var how string
	switch r.Outcome {
	case runtime.Exited:
		how = fmt.Sprintf("exited %d", r.ExitCode)
	case runtime.Signaled:
		how = "ended by " + signalName(r.Signal)
	default:
		how = string(r.Outcome)
	}
	if r.Reason != "" {
		how += ": " + lineText(r.Reason)
	}
	return how
}

// usageTexts leave out what is not known, and what says nothing: a program that
// never started used nothing.
func usageTexts(r *runtime.Result) []string {
	if r.Outcome == runtime.StartFailed {
		return nil
	}
	texts := []string{rounded(r.Usage.Wall).String()}
	if r.Usage.CPU > 0 {
		texts = append(texts, "cpu "+rounded(r.Usage.CPU).String())
	}
	if r.Usage.MemoryPeak > 0 {
		texts = append(texts, "memory "+bytesText(r.Usage.MemoryPeak))
	}
	return texts
}

func filesText(files []workspace.Change, temporary bool) string {
	const discarded = "discarded with the temporary workspace; keep it by --workspace DIR or --keep"
	var b strings.Builder
	for _, c := range files[:min(len(files), maxShown)] {
		fmt.Fprintf(&b, "gaol: %s", fileText(c))
		if temporary && len(files) == 1 {
			b.WriteString(", " + discarded)
		}
		b.WriteString("\n")
	}
	if more := len(files) - maxShown; more > 0 {
		fmt.Fprintf(&b, "gaol: and %d more (--json lists all)\n", more)
	}
	if temporary && len(files) > 1 {
		fmt.Fprintf(&b, "gaol: all of them %s\n", discarded)
	}
	return b.String()
}

func fileText(c workspace.Change) string {
	name := c.Path
	if quoted := strconv.Quote(name); c.Raw != nil || quoted != `"`+name+`"` || strings.ContainsAny(name, " '") || strings.HasPrefix(name, "-") {
		name = quoted
		if c.Raw != nil {
			name = strconv.Quote(string(c.Raw))
		}
	}
	text := fmt.Sprintf("%s %s", c.Kind, lineText(name))
	if c.Kind != workspace.Deleted {
		what := c.MIME
		if what == "" {
			what = c.Type
		}
		text += fmt.Sprintf(" (%s, %s)", bytesText(c.Size), what)
	}
	switch {
	case c.Risky && pointsOutside(c):
		text += " — points outside the workspace"
	case c.Risky:
		text += " — common tools would execute it"
	}
	return text
}

// pointsOutside tells a link that is risky for where it leads from one that is
// risky for its name.
func pointsOutside(c workspace.Change) bool {
	return c.Type == "symlink" && (path.IsAbs(c.Target) || !filepath.IsLocal(path.Join(path.Dir(c.Path), c.Target)))
}

func rounded(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}

func receiptText(r *runtime.Result) string {
	var b strings.Builder
	b.WriteString("gaol: receipt\n")
	for _, name := range append(policy.LimitNames(), "network", "rootfs", "seccomp") {
		if means, ok := r.Receipt[name]; ok {
			fmt.Fprintf(&b, "gaol:   %-16s %s\n", name, means)
		}
	}
	b.WriteString("gaol: stages\n")
	for _, s := range r.Stages {
		fmt.Fprintf(&b, "gaol:   %-16s %s\n", s.Name, rounded(s.Took))
	}
	fmt.Fprintf(&b, "gaol: policy %s\ngaol: image  %s\ngaol: id     %s\n", r.Policy, r.Image, r.ID)
	return b.String()
}
