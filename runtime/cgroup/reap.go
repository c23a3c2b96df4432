package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
)

// Reap kills what is in the groups that a dead owner recorded
// (Hierarchy.Paths) and removes them. The caller has made sure that the owner
// is dead. A path that exists and is not a gaol group of a mounted hierarchy
// is refused with ErrForeign and left alone; the others are reaped all the
// same. A group that is gone is no error.
func Reap(ctx context.Context, paths []string) error {
	return reap(ctx, kernel{}, "/proc", paths)
}

func reap(ctx context.Context, fs tree, proc string, paths []string) error {
	text, err := fs.read(path.Join(proc, "self/mountinfo"))
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	mounts, err := parseMounts(text, "/")
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range paths {
		if err := reapOne(ctx, fs, mounts, dir); err != nil {
			errs = append(errs, fmt.Errorf("reap %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

func reapOne(ctx context.Context, fs tree, mounts []mount, dir string) error {
	parent := path.Dir(dir)
	if !path.IsAbs(dir) || path.Clean(dir) != dir || path.Base(parent) != shared || checkName(path.Base(dir)) != nil {
		return ErrForeign
	}
	if _, err := fs.children(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// The longest mount point above dir is the one that dir is really in.
	var in mount
	for _, m := range mounts {
		if _, ok := beneath(parent, m.point); ok && len(m.point) > len(in.point) {
			in = m
		}
	}
	if in.point == "" {
		return ErrForeign
	}
	if err := empty(ctx, fs, in.version, dir); err != nil {
		return err
	}
	if err := remove(ctx, fs, in.version, dir); err != nil {
		return err
	}
	return dropEmpty(fs, parent)
}
