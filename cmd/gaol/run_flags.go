package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"gaol/policy"
)

// runFlags are the flags of `gaol run`. Names and units are docker's where
// docker has them.
type runFlags struct {
	image, policyFile         string
	workspace, workDir        string
	env, envFiles, mounts     []string
	memory, cpus, timeout     string
	pids                      int
	denyImports               []string
	json, receipt, raw, quiet bool
	keep                      bool
}

// policy is the operator's policy narrowed by the policy file and the flags.
func (f *runFlags) policy(cfg *config) (policy.Effective, error) {
	effective, err := cfg.policy(f.policyFile)
	if err != nil {
		return policy.Effective{}, err
	}
	doc, err := f.document()
	if err != nil {
		return policy.Effective{}, err
	}
	effective = effective.Narrow("flags", doc)
	return effective, effective.Policy.Validate()
}

// document is what the flags ask of the policy.
func (f *runFlags) document() (policy.Document, error) {
	var text strings.Builder
	set := func(key, value string, quote bool) {
		if value == "" {
			return
		}
		if quote {
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&text, "%s = %s\n", key, value)
	}
	text.WriteString("[limits]\n")
	set("memory", f.memory, true)
	set("cpus", f.cpus, false)
	set("timeout", f.timeout, true)
	if f.pids != 0 {
		set("pids", fmt.Sprint(f.pids), false)
	}
	if len(f.denyImports) > 0 {
		quoted := make([]string, len(f.denyImports))
		for i, module := range f.denyImports {
			quoted[i] = strconv.Quote(module)
		}
		fmt.Fprintf(&text, "[python]\ndeny_imports = [%s]\n", strings.Join(quoted, ", "))
	}
	return policy.ParseDocument("flags", []byte(text.String()))
}

// environment gathers the variables of --env-file and -e, the latter last.
func (f *runFlags) environment() ([]string, error) {
	var env []string
	for _, name := range f.envFiles {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the environment file: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\r\n")
			if line != "" && !strings.HasPrefix(line, "#") {
				env = append(env, fromEnvironment(line))
			}
		}
	}
	for _, pair := range f.env {
		env = append(env, fromEnvironment(pair))
	}
	return env, nil
}

// fromEnvironment gives a bare name the value that gaol's own environment has.
func fromEnvironment(pair string) string {
	if strings.Contains(pair, "=") {
		return pair
	}
	return pair + "=" + os.Getenv(pair)
}
