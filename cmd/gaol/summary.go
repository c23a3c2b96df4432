package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/workspace"
)

// summary is what a person wants to know in a few lines.
func summary(r *runtime.Result) string {
	var b strings.Builder
	var how string
	switch r.Outcome {
	case runtime.Exited:
		how = fmt.Sprintf("exited %d", r.ExitCode)
	case runtime.Signaled:
		how = "ended by " + signalName(r)
	default:
		how = string(r.Outcome)
	}
	if r.Reason != "" {
		how += ": " + lineText(r.Reason)
	}
	fmt.Fprintf(&b, "gaol: %s · %s · cpu %s · memory %s\n", how,
		rounded(r.Usage.Wall), rounded(r.Usage.CPU), bytesText(r.Usage.MemoryPeak))
	for _, c := range r.Files {
		fmt.Fprintf(&b, "gaol: %s\n", fileText(c))
	}
	if r.FilesNote != "" {
		fmt.Fprintf(&b, "gaol: note: %s\n", lineText(r.FilesNote))
	}
	if r.SetIDStripped > 0 {
		fmt.Fprintf(&b, "gaol: note: set-id bits of %d files were removed\n", r.SetIDStripped)
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
	if c.Risky {
		text += " — common tools would execute it"
	}
	return text
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
