package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"
)

// patience bounds whatever waits on another process and was given no earlier
// deadline.
const patience = 10 * time.Second

// Find looks for the strongest hierarchy in which this process may make
// groups: version 2 when it has as many controllers as version 1, else 1.
// With version 2 this process may be moved, into a group "gaol-self" beside
// the groups to come when its own group was delegated to it, or into a scope
// of its own when Config.SessionBus is set; root may find the controllers
// handed on at the top of the tree. It takes at most ten seconds.
// The error is an *Unavailable when there is no such place, and that of ctx
// when it ended first.
func Find(ctx context.Context, cfg Config) (*Hierarchy, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	f := finder{Config: cfg, fs: kernel{}, pid: os.Getpid(), privileged: os.Geteuid() == 0}
	if cfg.SessionBus != "" {
		f.scopes = systemd{address: cfg.SessionBus}
	}
	return f.find(ctx)
}

// finder is Find with everything that it meets made explicit.
type finder struct {
	Config
	fs         tree
	pid        int
	privileged bool
	scopes     scoper // nil: none to ask
}

func (f finder) find(ctx context.Context) (*Hierarchy, error) {
	text, err := f.fs.read(path.Join(f.Proc, "self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	mounts, err := parseMounts(text, f.Mount)
	if err != nil {
		return nil, err
	}
	in, err := readMembership(f.fs, path.Join(f.Proc, "self/cgroup"))
	if err != nil {
		return nil, err
	}
	two, err2 := f.unified(ctx, mounts)
	if err := ctx.Err(); err != nil {
		// A search that was cut short must not look like a weaker host.
		return nil, fmt.Errorf("look for a hierarchy: %w", err)
	}
	if err2 == nil && len(two.controls) == len(wanted) {
		return two, nil
	}
	one, err1 := f.split(mounts, in)
	switch {
	case one == nil && two == nil:
		return nil, reason(err1, err2)
	case two == nil || one != nil && len(one.controls) > len(two.controls):
		return one, nil
	}
	return two, nil
}

// errAbsent: this version is not here at all, so its error explains nothing.
var errAbsent = errors.New("not mounted or without controllers")

// reason picks the error of the version that the host really uses.
func reason(err1, err2 error) error {
	switch {
	case !errors.Is(err2, errAbsent):
		return err2
	case !errors.Is(err1, errAbsent):
		return err1
	}
	return &Unavailable{
		Reason: "no hierarchy with a memory, cpu or pids controller is mounted",
		Fix:    "mount one: mount -t cgroup2 none /sys/fs/cgroup",
	}
}

// wanted are the controllers that limit something, by the word that Controls
// uses for what they limit.
var wanted = []struct{ controller, control string }{{"memory", "memory"}, {"cpu", "cpus"}, {"pids", "pids"}}

func controls(controllers []string) []string {
	var words []string
	for _, w := range wanted {
		if slices.Contains(controllers, w.controller) {
			words = append(words, w.control)
		}
	}
	return words
}
