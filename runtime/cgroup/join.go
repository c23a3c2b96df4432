package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// JoinThread makes the calling OS thread a member (v1), so that the next
// process which it starts is one from birth; with v2 it does nothing, see
// Place. The caller has called runtime.LockOSThread and never unlocks, so that
// the thread ends with its goroutine. ErrMainThread means: try from another
// goroutine. After an error the thread may be half inside and must end too.
// Prefer Spawn, which sees to all of this.
func (g *Group) JoinThread() error {
	if g.h.version == 2 {
		return nil
	}
	if unix.Gettid() == os.Getpid() {
		return fmt.Errorf("join %s: %w", g.name, ErrMainThread)
	}
	for _, dir := range g.paths {
		if err := joinTasks(g.h.fs, dir); err != nil {
			return fmt.Errorf("join %s: %w", g.name, err)
		}
	}
	in, err := readMembership(g.h.fs, path.Join(g.h.proc, "thread-self/cgroup"))
	if err != nil {
		return err
	}
	for _, b := range g.h.branches {
		if group, _ := in.of(b.mount); group != path.Join(b.base, shared, g.name) {
			return fmt.Errorf("join %s: %w: thread is in %s of %v", g.name, ErrReadBack, group, b.controllers)
		}
	}
	return nil
}

// joinTasks moves the calling thread. "0" is the writer itself: naming it by
// number would make the kernel stop all forks on the host for milliseconds.
func joinTasks(fs tree, dir string) error { return fs.write(path.Join(dir, "tasks"), "0") }

// Spawn calls start, which starts exactly one process, in such a way that the
// process is born inside the group; with v2 it just calls it, since Place does
// the work. The thread that starts the process goes back where it came from
// and lives on, so a parent-death signal means this process and not a thread
// of it. Its error is start's own, or says that start was not called.
func (g *Group) Spawn(start func() error) error {
	if g.h.version == 2 {
		return start()
	}
	done := make(chan error, 1)
	go g.spawn(start, done)
	return <-done
}

func (g *Group) spawn(start func() error, done chan<- error) {
	goruntime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// While we hold the main thread, the next goroutine gets another.
		inner := make(chan error, 1)
		go g.spawn(start, inner)
		done <- <-inner
		goruntime.UnlockOSThread()
		return
	}
	home, err := g.home()
	if err == nil {
		err = g.JoinThread()
	}
	if err == nil {
		err = start()
	}
	var errBack error
	for _, dir := range home {
		errBack = errors.Join(errBack, joinTasks(g.h.fs, dir))
	}
	if errBack == nil && (home == nil || len(home) == len(g.h.branches)) {
		// Otherwise the thread ends here, still locked, and takes its
		// membership with it.
		goruntime.UnlockOSThread()
	}
	done <- err
}

// home lists the directories of the groups that the calling thread is in.
func (g *Group) home() ([]string, error) {
	in, err := readMembership(g.h.fs, path.Join(g.h.proc, "thread-self/cgroup"))
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, b := range g.h.branches {
		group, ok := in.of(b.mount)
		if dir, visible := b.mount.dir(group); ok && visible {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
