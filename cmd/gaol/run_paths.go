package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gaol/runtime"
	"gaol/runtime/workspace"
)

// openPaths opens the workspace and the mounts; kept is where a temporary
// workspace stays.
func (f *runFlags) openPaths(req *runtime.Request, cfg *config) (kept string, undo func(), err error) {
	var closers []io.Closer
	undo = func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	rules, err := cfg.rules(req.Policy)
	if err != nil {
		return "", undo, err
	}
	mountRules, path := rules, f.workspace
	switch {
	case f.keep:
		if path, err = cfg.keptWorkspace(); err != nil {
			return "", undo, err
		}
		// It lies among gaol's own directories, and was made just now.
		kept, rules = path, workspace.Rules{Roots: []string{path}}
	}
	if path != "" {
		if path, err = filepath.Abs(path); err != nil {
			return "", undo, fmt.Errorf("find the workspace: %w", err)
		}
		if req.Workspace, err = workspace.Open(path, rules); err != nil {
			return "", undo, err
		}
		closers = append(closers, req.Workspace)
	}
	for _, text := range f.mounts {
		m, err := openMount(text, mountRules)
		if err != nil {
			return "", undo, err
		}
		req.Mounts = append(req.Mounts, m)
		closers = append(closers, m.Source)
	}
	return kept, undo, nil
}

// keptWorkspace makes the directory of a workspace that stays.
func (c *config) keptWorkspace() (string, error) {
	parent := filepath.Join(c.Host.Data, "workspaces")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("make a workspace to keep: %w", err)
	}
	dir, err := os.MkdirTemp(parent, time.Now().UTC().Format("20060102-150405-"))
	if err != nil {
		return "", fmt.Errorf("make a workspace to keep: %w", err)
	}
	return dir, nil
}

// openMount reads SRC:DST:ro.
func openMount(text string, rules workspace.Rules) (runtime.Mount, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[2] != "ro" {
		return runtime.Mount{}, &hinted{fmt.Errorf("mount %q is not SRC:DST:ro", text), "mounts are read-only, and say so; what the program may write is the workspace"}
	}
	if err := runtime.CheckDestination(parts[1]); err != nil {
		return runtime.Mount{}, err
	}
	path, err := filepath.Abs(parts[0])
	if err != nil {
		return runtime.Mount{}, fmt.Errorf("find the mount source: %w", err)
	}
	source, err := workspace.OpenSource(path, rules)
	if err != nil {
		return runtime.Mount{}, err
	}
	return runtime.Mount{Source: source, Destination: parts[1]}, nil
}
