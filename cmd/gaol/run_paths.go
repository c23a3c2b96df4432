package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gaol/runtime"
	"gaol/runtime/workspace"
)

// openPaths opens the workspace, when there is one, and the mounts.
func (f *runFlags) openPaths(req *runtime.Request, cfg *config) (_ func(), err error) {
	var closers []io.Closer
	undo := func() {
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
		return nil, err
	}
	if f.workspace != "" {
		path, err := filepath.Abs(f.workspace)
		if err != nil {
			return nil, fmt.Errorf("find the workspace: %w", err)
		}
		if req.Workspace, err = workspace.Open(path, rules); err != nil {
			return nil, hintRoots(err, path, rules.Roots)
		}
		closers = append(closers, req.Workspace)
	}
	for _, text := range f.mounts {
		m, err := openMount(text, rules)
		if err != nil {
			return nil, err
		}
		closers = append(closers, m.Source)
		for _, other := range req.Mounts {
			if other.Destination == m.Destination {
				return nil, fmt.Errorf("mount %q: %s is shown at %q already", text, other.Source.Path(), m.Destination)
			}
		}
		req.Mounts = append(req.Mounts, m)
	}
	return undo, nil
}

// keptWorkspace makes and opens a workspace that stays. The caller closes it.
func (c *config) keptWorkspace() (*workspace.Dir, error) {
	parent := filepath.Join(c.Host.Data, "workspaces")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("make a workspace to keep: %w", err)
	}
	path, err := os.MkdirTemp(parent, time.Now().UTC().Format("20060102-150405-"))
	if err != nil {
		return nil, fmt.Errorf("make a workspace to keep: %w", err)
	}
	// It lies among gaol's own directories, and was made just now. The
	// operator's roots are about the directories of others.
	dir, err := workspace.Open(path, workspace.Rules{Roots: []string{path}})
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
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
		return runtime.Mount{}, hintRoots(err, path, rules.Roots)
	}
	return runtime.Mount{Source: source, Destination: parts[1]}, nil
}

// hintRoots adds to the refusal of a path who decides, when it lies outside the
// allowed roots: other refusals are nobody's choice.
func hintRoots(err error, path string, roots []string) error {
	within := slices.ContainsFunc(roots, func(root string) bool { return inside(path, root) })
	if within || !errors.Is(err, workspace.ErrNotAllowed) {
		return err
	}
	return &hinted{err, "files.roots in config.toml or a policy file says where workspaces and mounts may lie"}
}
