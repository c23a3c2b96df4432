package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Group holds one sandbox. Remove ends its life and closes what it has open.
// Its methods may be called at the same time.
type Group struct {
	h     *Hierarchy
	name  string
	paths []string

	mu  sync.Mutex
	dir *os.File // v2: the group itself, to clone into; nil once removed
}

// New makes the group called name, sets the limits that Controls lists, and
// reads each one back. The caller chose the name and recorded it beforehand,
// so that a crash at any moment leaves something that Reap can find. When
// anything is not as asked, nothing is left and the error says what:
// ErrName, ErrLimit, ErrReadBack, or the kernel's own (fs.ErrExist when there
// is a group of that name already).
func (h *Hierarchy) New(name string, l Limits) (*Group, error) {
	if err := errors.Join(checkName(name), l.check()); err != nil {
		return nil, err
	}
	g := &Group{h: h, name: name}
	if err := g.build(l); err != nil {
		undo := make([]error, 0, len(g.paths))
		for _, dir := range slices.Backward(g.paths) {
			undo = append(undo, h.fs.rmdir(dir))
		}
		for _, b := range h.branches {
			undo = append(undo, dropEmpty(h.fs, b.parent()))
		}
		return nil, fmt.Errorf("make group %s: %w", name, errors.Join(append([]error{err}, undo...)...))
	}
	return g, nil
}

func (g *Group) build(l Limits) error {
	for _, b := range g.h.branches {
		if err := g.h.makeLeaf(b, g.name); err != nil {
			return err
		}
		dir := b.leaf(g.name)
		g.paths = append(g.paths, dir)
		for _, s := range settings(g.h.version, b.controllers, l) {
			if err := s.apply(g.h.fs, dir); err != nil {
				return err
			}
		}
	}
	if g.h.version == 1 {
		return nil
	}
	dir, err := os.Open(g.paths[0])
	g.dir = dir
	return err
}

// makeLeaf makes the group and, when it is missing, the parent that all gaol
// processes share. Another process may remove that parent, empty for a moment,
// between our two steps; then both are done again.
func (h *Hierarchy) makeLeaf(b branch, name string) error {
	var err error
	for range 100 {
		if err = h.fs.mkdir(b.parent()); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err = h.enable(b.parent(), b.controllers); err == nil {
			err = h.fs.mkdir(b.leaf(name))
		}
		if !gone(err) {
			return err
		}
	}
	return err
}

// enable hands the controllers on to the groups inside dir, where the kernel
// wants to be told (v2).
func (h *Hierarchy) enable(dir string, controllers []string) error {
	if h.version == 1 {
		return nil
	}
	return enable(h.fs, dir, controllers)
}

// Place makes the process that is started with attr a member from its first
// moment (v2, Linux 5.7 or later). With v1 it does nothing: use
// JoinThread, which does nothing with v2. The process must be started before
// Remove.
func (g *Group) Place(attr *syscall.SysProcAttr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dir == nil {
		return
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(g.dir.Fd())
}

func (g *Group) forget() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dir == nil {
		return nil
	}
	err := g.dir.Close()
	g.dir = nil
	if errors.Is(err, unix.EBADF) {
		return nil
	}
	return err
}
