package cgroup

import (
	"fmt"
	"path"
	"slices"
)

// split looks for a place in version 1, where controllers are split over
// several trees, alone or joined ("cpu,cpuacct").
func (f finder) split(mounts []mount, in membership) (*Hierarchy, error) {
	h := &Hierarchy{version: 1, fs: f.fs, proc: f.Proc}
	var have []string
	for _, m := range mounts {
		b, err := f.branch(m, in)
		if err != nil {
			return nil, err
		}
		if len(b.controllers) > 0 {
			h.branches = append(h.branches, b)
			have = append(have, b.controllers...)
		}
	}
	h.controls = controls(have)
	if len(h.controls) == 0 {
		return nil, errAbsent
	}
	return h, nil
}

// branch returns the branch for one mount, without controllers when it has
// none of use.
func (f finder) branch(m mount, in membership) (branch, error) {
	b := branch{mount: m}
	if m.version != 1 {
		return b, nil
	}
	for _, c := range m.controllers {
		if slices.Contains([]string{"memory", "cpu", "cpuacct", "pids"}, c) {
			b.controllers = append(b.controllers, c)
		}
	}
	if len(b.controllers) == 0 {
		return b, nil
	}
	b.base = f.Parent
	if f.Parent == "" {
		// Our own group, so that whatever bounds us bounds the sandbox too.
		own, ok := in.of(m)
		if !ok {
			return b, fmt.Errorf("find own group in %s: not a member", m.point)
		}
		b.base = own
	}
	dir, visible := m.dir(b.base)
	switch {
	case !visible && f.Parent != "":
		return b, f.noParent(m.point, nil)
	case !visible: // a container whose own group is above what it sees
		b.base, dir = m.root, m.point
	}
	if err := f.fs.writable(dir); err != nil {
		return b, f.refused(dir, err)
	}
	if i := slices.Index(b.controllers, "cpu"); i >= 0 {
		// A kernel without CONFIG_CFS_BANDWIDTH has shares but no quota.
		if _, err := f.fs.read(path.Join(dir, "cpu.cfs_quota_us")); err != nil {
			b.controllers = slices.Delete(b.controllers, i, i+1)
		}
	}
	return b, nil
}

func (f finder) refused(dir string, err error) error {
	switch {
	case f.Parent != "":
		return f.noParent(dir, err)
	case !f.privileged:
		return &Unavailable{
			Reason: "cgroup v1: only root can make groups here",
			Fix: "run as root, or boot with systemd.unified_cgroup_hierarchy=1, or let root make a group " +
				"in each controller, give it to this user, and name it as cgroup_parent",
			Err: err,
		}
	}
	return &Unavailable{
		Reason: "cgroup v1: " + dir + " cannot be written",
		Fix:    "mount the cgroup file system writable, or name a writable group as cgroup_parent",
		Err:    err,
	}
}

func (f finder) noParent(where string, err error) error {
	return &Unavailable{
		Reason: "cgroup_parent " + f.Parent + " cannot be used in " + where,
		Fix:    "make that group and give it to this user, or take cgroup_parent out of the configuration",
		Err:    err,
	}
}
