package cgroup

import (
	"fmt"
	"path"
	"strings"
)

// Config says where to look. The zero value looks at the running kernel and
// asks nobody for anything.
type Config struct {
	// Mount is the directory beneath which hierarchies are mounted;
	// "" means /sys/fs/cgroup.
	Mount string
	// Proc is where procfs is mounted; "" means /proc.
	Proc string
	// Parent is the group beneath which to make groups, as /proc/self/cgroup
	// would write it ("/gaol.slice"). It must exist. "" finds one.
	Parent string
	// SessionBus is the D-Bus address of the user's systemd
	// ("unix:path=/run/user/1000/bus"). "" never asks systemd for a scope.
	SessionBus string
}

func (c Config) filled() (Config, error) {
	if c.Mount == "" {
		c.Mount = "/sys/fs/cgroup"
	}
	if c.Proc == "" {
		c.Proc = "/proc"
	}
	c.Mount = path.Clean(c.Mount)
	if c.Parent == "" {
		return c, nil
	}
	for _, part := range strings.Split(c.Parent, "/") {
		if part == ".." {
			return c, fmt.Errorf("use cgroup parent %q: %w", c.Parent, ErrForeign)
		}
	}
	c.Parent = path.Clean("/" + c.Parent)
	return c, nil
}
