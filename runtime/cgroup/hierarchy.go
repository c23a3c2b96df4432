package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"

	"golang.org/x/sys/unix"
)

const (
	shared = "gaol"      // the group that holds all of ours beneath one base
	lair   = "gaol-self" // where this process moves when its own group must be empty
)

// Hierarchy is a place where this process may make groups. It has no state of
// its own and may be used by many goroutines.
type Hierarchy struct {
	version  int
	controls []string
	branches []branch
	fs       tree
	proc     string
}

// branch is one file-system tree with the controllers that it has: one for
// v2, one for each distinct mount for v1.
type branch struct {
	mount       mount
	base        string   // the group beneath which we build, as /proc/PID/cgroup names it
	controllers []string // the kernel's words, of those that we set or read
}

func (b branch) parent() string {
	dir, _ := b.mount.dir(path.Join(b.base, shared))
	return dir
}

func (b branch) leaf(name string) string { return path.Join(b.parent(), name) }

// Version is 1 or 2, the cgroup interface in use.
func (h *Hierarchy) Version() int { return h.version }

// Controls lists which of "memory", "cpus" and "pids" a group made here
// enforces. A limit that is not listed is not set.
func (h *Hierarchy) Controls() []string { return append([]string(nil), h.controls...) }

// Paths lists the directories that New would make for name, so that a caller
// can record them before there is anything to lose.
func (h *Hierarchy) Paths(name string) []string {
	dirs := make([]string, len(h.branches))
	for i, b := range h.branches {
		dirs[i] = b.leaf(name)
	}
	return dirs
}

// dropEmpty removes a group unless somebody is using it.
func dropEmpty(fs tree, dir string) error {
	err := fs.rmdir(dir)
	if gone(err) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

func gone(err error) bool {
	// ENODEV is what a control file answers whose group went after it was opened.
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

var nameRule = regexp.MustCompile(`^gaol-[A-Za-z0-9_.-]+$`)

func checkName(name string) error {
	if len(name) > 100 || !nameRule.MatchString(name) || name == lair {
		return fmt.Errorf("name group %q: %w", name, ErrName)
	}
	return nil
}
