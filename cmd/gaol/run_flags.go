package main

import (
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/spf13/cobra"

	"gaol/policy"
)

// runFlags are the flags of `gaol run`. Names and units are docker's where
// docker has them.
type runFlags struct {
	image                     string
	workspace, workDir        string
	env, envFiles, mounts     []string
	memory, cpus, pids        string
	timeout                   string
	policyFiles, denyImports  []string
	json, receipt, raw, quiet bool
	keep, interactive         bool

	given func(flag string) bool // on the command line, whatever its value
}

func (f *runFlags) register(c *cobra.Command) {
	flags := c.Flags()
	f.given, flags.SortFlags = flags.Changed, false
	flags.StringVar(&f.image, "image", "", "`reference` of the image (default: image in config.toml)")
	flags.StringVar(&f.workspace, "workspace", "", "`directory` that the program may write, at /workspace inside (default: a temporary one)")
	flags.StringVarP(&f.workDir, "workdir", "w", "", "working `directory` inside (default /workspace)")
	flags.BoolVarP(&f.interactive, "interactive", "i", false, "give gaol's standard input to the program")
	flags.BoolVar(&f.keep, "keep", false, "keep the temporary workspace and say where it is")
	flags.StringArrayVarP(&f.mounts, "volume", "v", nil, "show a host path read-only inside: `SRC:DST:ro`")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set `NAME=VALUE` inside; NAME alone takes the value from gaol's environment, if there is one")
	flags.StringArrayVar(&f.envFiles, "env-file", nil, "read NAME=VALUE lines from `file`")
	flags.StringVarP(&f.memory, "memory", "m", "", "memory limit, such as `512m`")
	flags.StringVar(&f.cpus, "cpus", "", "processors' worth of time, such as `1.5`")
	flags.StringVar(&f.pids, "pids-limit", "", "`number` of processes and threads inside")
	flags.StringVar(&f.timeout, "timeout", "", "wall time, such as `30s`")
	flags.StringArrayVar(&f.policyFiles, "policy", nil, "narrow the policy by this `file`; several narrow in turn")
	flags.StringArrayVar(&f.denyImports, "deny-import", nil, "refuse code that imports `module` (advice, not a boundary)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object: outcome, output, files, usage, receipt")
	flags.BoolVar(&f.receipt, "receipt", false, "print how each limit was enforced, and each stage's time")
	flags.BoolVar(&f.raw, "raw", false, "do not make output safe for the terminal")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing of gaol's own but errors")
}

// check finds what no value of the flags can mean.
func (f *runFlags) check() error {
	for _, text := range []struct{ flag, value string }{
		{"image", f.image}, {"workspace", f.workspace}, {"workdir", f.workDir},
	} {
		if f.given(text.flag) && text.value == "" {
			return fmt.Errorf("--%s: it is empty", text.flag)
		}
	}
	if f.workDir != "" && (!path.IsAbs(f.workDir) || path.Clean(f.workDir) != f.workDir) {
		return fmt.Errorf("--workdir: %q is not an absolute path in its shortest form", f.workDir)
	}
	if f.workspace != "" && f.keep {
		return &hinted{errors.New("--keep and --workspace exclude each other"), "a workspace of your own is always kept"}
	}
	return nil
}

// policy is the operator's policy narrowed by the policy files and the flags,
// with a note for each wish that was not granted.
func (f *runFlags) policy(cfg *config) (_ policy.Policy, notes []string, err error) {
	files, err := cfg.policy(f.policyFiles)
	if err != nil {
		return policy.Policy{}, nil, err
	}
	doc, err := f.document()
	if err != nil {
		return policy.Policy{}, nil, err
	}
	effective := files.Narrow("flags", doc)
	return effective.Policy, clampNotes(effective.Clamps, len(files.Clamps)), effective.Policy.Validate()
}

// document is what the flags ask of the policy. An error names the flag.
func (f *runFlags) document() (policy.Document, error) {
	var doc policy.Document
	limits := &doc.Limits
	for _, part := range []struct {
		flag string
		set  func() error
	}{
		{"memory", func() error { return parsed(&limits.Memory, f.memory, policy.ParseSize) }},
		{"cpus", func() error { return parsed(&limits.CPUs, f.cpus, parseCPUs) }},
		{"timeout", func() error { return parsed(&limits.Timeout, f.timeout, policy.ParseDuration) }},
		{"pids-limit", func() error { return parsed(&limits.PIDs, f.pids, parseCount) }},
		{"deny-import", func() error { doc.Python.DenyImports = f.denyImports; return nil }},
	} {
		if !f.given(part.flag) {
			continue
		}
		err := part.set()
		if err == nil {
			err = doc.Validate() // the parts before this one are valid
		}
		if err != nil {
			return policy.Document{}, fmt.Errorf("--%s: %w", part.flag, err)
		}
	}
	return doc, nil
}

// parsed puts what a flag's text means where field points.
func parsed[T any](field **T, text string, parse func(string) (T, error)) error {
	value, err := parse(text)
	*field = &value
	return err
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %.50q is not a whole number", policy.ErrValue, text)
	}
	return n, nil
}

func parseCPUs(text string) (policy.CPUs, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.50q is not a number", policy.ErrValue, text)
	}
	return policy.CPUs(n), nil
}
