package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// Remove takes the group away, and the parent that all gaol processes share
// when it holds no other. It waits until the group's processes have ended, as
// long as ctx allows and at most ten seconds, and kills nothing; then the
// error is ErrBusy and Remove can be called again. Whatever the error, all that
// can go is gone, and nothing is open any more. A group that is gone is no
// error.
func (g *Group) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errs []error
	for i, dir := range g.paths {
		errs = append(errs,
			remove(ctx, g.h.fs, g.h.version, dir),
			dropEmpty(g.h.fs, g.h.branches[i].parent()))
	}
	if err := errors.Join(append(errs, g.forget())...); err != nil {
		return fmt.Errorf("remove %s: %w", g.name, err)
	}
	return nil
}

// remove deletes dir and the groups inside it once they are empty.
func remove(ctx context.Context, fs tree, version int, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The kernel counts a process out a moment after it reports its end, and
	// nothing tells when: ask again, soon at first.
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, round) {
		err := prune(fs, dir)
		if err == nil || !errors.Is(err, unix.EBUSY) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w: %w", ErrBusy, ctx.Err(), err)
		}
		var left int
		if version == 2 {
			left, err = depopulated(fs, dir)
		} else {
			left, err = strike(fs, dir, 0)
		}
		if err != nil || left == 0 {
			backOff(ctx, wait)
		}
	}
}

// prune tries once to delete dir and what is inside, deepest first.
func prune(fs tree, dir string) error {
	err := fs.rmdir(dir)
	if gone(err) {
		return nil
	}
	if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	inside, errList := fs.children(dir)
	if len(inside) == 0 || errList != nil {
		return err
	}
	for _, child := range inside {
		if err := prune(fs, path.Join(dir, child)); err != nil {
			return err
		}
	}
	if err = fs.rmdir(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
