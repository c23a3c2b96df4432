package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLeft is how many leftovers an error names.
const maxLeft = 16

// RemoveError says what a removal had to leave behind. errors.Is finds
// ErrLeftover and the first cause in it.
type RemoveError struct {
	Left  []string // at most 16 paths, relative to what was to be removed
	Count int      // how many there are in all
	Cause error    // why the first of them is left
}

func (e *RemoveError) Error() string {
	return fmt.Sprintf("%d entries are left, the first is %s: %v", e.Count, shorten(e.Left[0]), e.Cause)
}

// Unwrap returns ErrLeftover and the first cause.
func (e *RemoveError) Unwrap() []error { return []error{ErrLeftover, e.Cause} }

func (e *RemoveError) add(more RemoveError) {
	if e.Count == 0 {
		e.Cause = more.Cause
	}
	e.Count += more.Count
	e.Left = append(e.Left, more.Left[:min(len(more.Left), maxLeft-len(e.Left))]...)
}

// Empty removes everything in the workspace and keeps the directory itself,
// since a sandbox that has it mounted would not see another one. It never
// follows a link nor enters a mount; directories that lack access for their
// owner are given it. What resists is left, and named in a *RemoveError.
func (d *Dir) Empty(ctx context.Context) error {
	err := d.hold(func(fd int) error {
		top, err := reopenTop(fd)
		if err != nil {
			return err
		}
		return removeInside(ctx, top)
	})
	if err != nil {
		return fmt.Errorf("empty workspace: %w", err)
	}
	return nil
}

// RemoveAll removes the entry called name in the directory parent and, if it is
// a directory, everything in it: any depth, any number, any mode, in constant
// memory and at most 32 descriptors. Nothing being there is no error. It never
// follows a link nor enters a mount. What resists is left, and named in a
// *RemoveError; a directory that somebody refills again and again resists too.
// ctx is the only bound on time.
func RemoveAll(ctx context.Context, parent *os.File, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("remove %q: %w", name, ErrBadName)
	}
	conn, err := parent.SyscallConn()
	if err != nil {
		return fmt.Errorf("remove %q: %w", name, err)
	}
	var removed error
	err = conn.Control(func(fd uintptr) { removed = removeEntry(ctx, int(fd), name) })
	if err = errors.Join(err, removed); err != nil {
		return fmt.Errorf("remove %q: %w", name, err)
	}
	return nil
}

func removeEntry(ctx context.Context, parent int, name string) error {
	for pass := 0; ; pass++ {
		isDir, err := unlink(parent, dirent{name: name})
		if !isDir {
			return err
		}
		if pass == maxAgain {
			return &RemoveError{Left: []string{name}, Count: 1, Cause: unix.ENOTEMPTY}
		}
		top, err := openDir(parent, name, true)
		if swapped(err) {
			continue // unlink decides again
		}
		if err != nil {
			return translate(err)
		}
		if err := removeInside(ctx, top); err != nil {
			return err
		}
	}
}

// unlink removes a file or an empty directory. full reports a directory that
// has something in it.
func unlink(dir int, entry dirent) (full bool, err error) {
	if entry.kind != unix.DT_DIR {
		err = unlinkat(dir, entry.name, 0)
		if !errors.Is(err, unix.EISDIR) {
			return false, err
		}
	}
	err = unlinkat(dir, entry.name, unix.AT_REMOVEDIR)
	switch {
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return true, nil
	case errors.Is(err, unix.ENOTDIR): // swapped since it was listed
		return false, unlinkat(dir, entry.name, 0)
	}
	return false, err
}

// swapped reports that what was a directory a moment ago is none any more.
func swapped(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func unlinkat(dir int, name string, flags int) error {
	for {
		switch err := unix.Unlinkat(dir, name, flags); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOENT):
			return nil
		default:
			return err
		}
	}
}
