package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unified looks for a place in version 2: the operator's parent and nothing
// else, or our own group, or the top as root, or a scope from systemd.
func (f finder) unified(ctx context.Context, mounts []mount) (*Hierarchy, error) {
	i := slices.IndexFunc(mounts, func(m mount) bool { return m.version == 2 })
	if i < 0 {
		return nil, errAbsent
	}
	m := mounts[i]
	if offered, err := words(f.fs, m.point, "cgroup.controllers"); err != nil || len(controls(offered)) == 0 {
		return nil, errAbsent // a hybrid host, whose controllers are with version 1
	}
	if f.Parent != "" {
		h, err := f.inside(m, f.Parent)
		if err != nil {
			dir, _ := m.dir(f.Parent)
			return nil, f.noParent(dir, err)
		}
		return h, nil
	}
	h, errOwn := f.own(m)
	if errOwn == nil {
		return h, nil
	}
	if f.privileged {
		h, err := f.inside(m, m.root)
		if err == nil {
			return h, nil
		}
		return nil, &Unavailable{
			Reason: "no group below " + m.point + " can hold limits",
			Fix: "mount it writable, or move this container's processes into a child group, " +
				"or name a group without processes as cgroup_parent",
			Err: errors.Join(errOwn, err),
		}
	}
	return f.scoped(ctx, m, errOwn)
}

// scoped asks systemd for a scope that is ours, and takes the place in it.
func (f finder) scoped(ctx context.Context, m mount, errOwn error) (*Hierarchy, error) {
	none := &Unavailable{
		Reason: "no part of the cgroup tree is delegated to this user",
		Fix: "log in so that systemd's user manager runs and XDG_RUNTIME_DIR is set (or: loginctl enable-linger), " +
			"or start with: systemd-run --user --scope -p Delegate=yes",
		Err: errOwn,
	}
	if f.scopes == nil {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := f.scopes.enter(ctx, f.pid)
	if err == nil {
		var h *Hierarchy
		if h, err = f.own(m); err == nil {
			return h, nil
		}
	}
	none.Err = err
	return nil, none
}

// own is a place in the group that we are in. Only processes of leaf groups
// are allowed to exist there, so when we are alone in it we step aside.
func (f finder) own(m mount) (*Hierarchy, error) {
	in, err := readMembership(f.fs, path.Join(f.Proc, "self/cgroup"))
	if err != nil {
		return nil, err
	}
	base, ok := in.of(m)
	if !ok {
		return nil, fmt.Errorf("find own group in %s: %w", m.point, errAbsent)
	}
	if path.Base(base) == lair {
		base = path.Dir(base)
	}
	h, err := f.inside(m, base)
	if !errors.Is(err, unix.EBUSY) {
		return h, err
	}
	dir, _ := m.dir(base)
	if errAside := f.stepAside(dir); errAside != nil {
		return nil, errors.Join(err, errAside)
	}
	return f.inside(m, base)
}

// stepAside moves this process out of dir, if nobody else is in there.
func (f finder) stepAside(dir string) error {
	members, err := words(f.fs, dir, "cgroup.procs")
	if err != nil {
		return err
	}
	self := strconv.Itoa(f.pid)
	if others := slices.DeleteFunc(members, func(pid string) bool { return pid == self }); len(others) > 0 {
		return fmt.Errorf("leave %s: processes %s are in it too", dir, strings.Join(others, " "))
	}
	nest := path.Join(dir, lair)
	if err := f.fs.mkdir(nest); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return f.fs.write(path.Join(nest, "cgroup.procs"), self)
}

// inside makes a hierarchy of the group base, if we may: the directory, the
// list of members and the list of controllers handed on must be ours to write.
func (f finder) inside(m mount, base string) (*Hierarchy, error) {
	dir, visible := m.dir(base)
	if !visible {
		return nil, fmt.Errorf("find group %s in %s: %w", base, m.point, unix.ENOENT)
	}
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if err := f.fs.writable(path.Join(dir, file)); err != nil {
			return nil, err
		}
	}
	if err := f.reachable(m, base); err != nil {
		return nil, err
	}
	offered, err := words(f.fs, dir, "cgroup.controllers")
	if err != nil {
		return nil, err
	}
	b := branch{mount: m, base: base}
	for _, w := range wanted {
		if slices.Contains(offered, w.controller) {
			b.controllers = append(b.controllers, w.controller)
		}
	}
	if len(b.controllers) == 0 {
		return nil, fmt.Errorf("use group %s: none of memory, cpu, pids is handed on to it", dir)
	}
	if b.controllers, err = f.enabled(dir, b.controllers); err != nil {
		return nil, err
	}
	return &Hierarchy{version: 2, controls: controls(b.controllers), branches: []branch{b}, fs: f.fs, proc: f.Proc}, nil
}

// enabled hands controllers on and returns those that the kernel agreed to:
// it refuses cpu with EINVAL while real-time processes run (RT_GROUP_SCHED).
func (f finder) enabled(dir string, controllers []string) ([]string, error) {
	var some []string
	for _, c := range controllers {
		err := enable(f.fs, dir, []string{c})
		if err == nil {
			some = append(some, c)
		} else if !errors.Is(err, unix.EINVAL) {
			return nil, err
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("hand controllers on in %s: %w", dir, unix.EINVAL)
	}
	return some, nil
}

// reachable checks the kernel's rule of delegation: to be born in a group, a
// process's parent must be allowed to write the member list of the closest
// group that holds both.
func (f finder) reachable(m mount, base string) error {
	in, err := readMembership(f.fs, path.Join(f.Proc, "self/cgroup"))
	if err != nil {
		return err
	}
	own, _ := in.of(m)
	common := base
	for common != "/" {
		if _, ok := beneath(own, common); ok {
			break
		}
		common = path.Dir(common)
	}
	dir, visible := m.dir(common)
	if !visible {
		return nil // above what this namespace shows; the kernel will judge
	}
	return f.fs.writable(path.Join(dir, "cgroup.procs"))
}

// enable hands controllers on to the groups inside dir. One by one: a kernel
// that refuses one of several refuses them all.
func enable(fs tree, dir string, controllers []string) error {
	handed, err := words(fs, dir, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	for _, c := range controllers {
		if slices.Contains(handed, c) {
			continue
		}
		if err := fs.write(path.Join(dir, "cgroup.subtree_control"), "+"+c); err != nil {
			return err
		}
	}
	return nil
}

// words reads a control file that is a list.
func words(fs tree, dir, file string) ([]string, error) {
	text, err := fs.read(path.Join(dir, file))
	return strings.Fields(text), err
}
