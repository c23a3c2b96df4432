package cgroup

import (
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// JoinThread makes the calling OS thread a member (v1), so that the next
// process which it starts is one from birth; with v2 it does nothing, see
// Place. The caller has called runtime.LockOSThread and never unlocks, so that
// the thread ends with its goroutine. ErrMainThread means: try from another
// goroutine. After an error the thread may be half inside and must end too.
// A parent-death signal of that process comes when the thread ends.
func (g *Group) JoinThread() error {
	if g.h.version == 2 {
		return nil
	}
	if unix.Gettid() == os.Getpid() {
		return fmt.Errorf("join %s: %w", g.name, ErrMainThread)
	}
	for _, dir := range g.paths {
		// "0" is the writer itself: naming it by number would make the kernel
		// stop all forks on the host for milliseconds.
		if err := g.h.fs.write(path.Join(dir, "tasks"), "0"); err != nil {
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
