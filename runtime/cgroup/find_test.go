package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// host builds one kind of machine and says what Find must make of it.
type host struct {
	name     string
	build    func(f *fake, find *finder)
	version  int
	controls []string
	paths    []string // of a group "gaol-a", relative to the fake /sys/fs/cgroup
	self     string   // v2: the group that we are in afterwards
	cause    error    // when there must be no place
}

var all = []string{"memory", "cpus", "pids"}

func splitHost(f *fake, _ *finder) {
	f.mount(1, "memory", "memory", "/box")
	f.mount(1, "cpu", "cpu", "/")
	f.mount(1, "cpuacct", "cpuacct", "/")
	f.mount(1, "pids", "pids", "/")
	f.mount(1, "freezer", "freezer", "/")
	f.mount(2, "unified", "", "/")
}

func unifiedHost(own string, others ...string) func(*fake, *finder) {
	return func(f *fake, _ *finder) {
		f.mount(2, "", "memory,cpu,pids", own)
		for _, pid := range others {
			file := filepath.Join(f.dir, own, "cgroup.procs")
			text, _ := f.read(file)
			f.put(file, text+pid+"\n")
		}
	}
}

// session is a user's login: root's groups above, other processes beside us.
func session(f *fake, find *finder) {
	unifiedHost("/user.slice/session-3.scope", "77")(f, find)
	find.privileged = false
	for _, dir := range []string{"", "user.slice", "user.slice/session-3.scope"} {
		f.denied[filepath.Join(f.dir, dir)] = unix.EACCES
		f.denied[filepath.Join(f.dir, dir, "cgroup.procs")] = unix.EACCES
	}
}

// granted is a systemd that moves the process where it was told to.
type granted struct {
	f     *fake
	group string
	err   error
}

func (g granted) enter(context.Context, int) error {
	if g.err != nil {
		return g.err
	}
	dir := filepath.Join(g.f.dir, "user.slice", g.group)
	delete(g.f.denied, filepath.Dir(dir))
	if err := g.f.mkdir(dir); err != nil {
		return err
	}
	return g.f.write(filepath.Join(dir, "cgroup.procs"), "4242")
}

var errNoBus = errors.New("no bus")

func hosts() []host {
	return []host{
		{name: "v1 split", build: splitHost, version: 1, controls: all,
			paths: []string{"memory/box/gaol/gaol-a", "cpu/gaol/gaol-a", "cpuacct/gaol/gaol-a", "pids/gaol/gaol-a"}},
		{name: "v1 joint", build: func(f *fake, _ *finder) {
			f.mount(1, "cpu,cpuacct", "cpu,cpuacct", "/")
			f.mount(1, "memory", "memory", "/")
		}, version: 1, controls: []string{"memory", "cpus"}, paths: []string{"cpu,cpuacct/gaol/gaol-a", "memory/gaol/gaol-a"}},
		{name: "v1 without quota", build: func(f *fake, find *finder) {
			f.lacks["cpu.cfs_quota_us"] = true
			splitHost(f, find)
		}, version: 1, controls: []string{"memory", "pids"}, paths: []string{"memory/box/gaol/gaol-a", "cpuacct/gaol/gaol-a", "pids/gaol/gaol-a"}},
		{name: "v1 with parent", build: func(f *fake, find *finder) {
			f.mount(1, "memory", "memory", "/op")
			find.Parent = "/op"
		}, version: 1, controls: []string{"memory"}, paths: []string{"memory/op/gaol/gaol-a"}},
		{name: "v1 without that parent", build: func(f *fake, find *finder) {
			splitHost(f, find)
			find.Parent = "/box" // only the memory tree has it
		}, cause: fs.ErrNotExist},
		{name: "hybrid, ordinary user", build: func(f *fake, find *finder) {
			splitHost(f, find)
			find.privileged = false
			for _, dir := range []string{"memory/box", "cpu", "cpuacct", "pids", "unified"} {
				f.denied[filepath.Join(f.dir, dir)] = unix.EACCES
			}
		}, cause: unix.EACCES},
		{name: "v1 mounted read-only", build: func(f *fake, find *finder) {
			splitHost(f, find)
			f.denied[filepath.Join(f.dir, "pids")] = unix.EROFS
		}, cause: unix.EROFS},
		{name: "nothing mounted", build: func(f *fake, _ *finder) {
			f.mount(1, "freezer", "freezer", "/")
		}, cause: ErrUnavailable},

		{name: "v2 root at the top", build: unifiedHost("/"), version: 2, controls: all, paths: []string{"gaol/gaol-a"}, self: "/"},
		{name: "v2 root alone in a service", build: unifiedHost("/s.service"), version: 2, controls: all,
			paths: []string{"s.service/gaol/gaol-a"}, self: "/s.service/gaol-self"},
		{name: "v2 root in a shared session", build: unifiedHost("/user.slice/s.scope", "77"), version: 2, controls: all,
			paths: []string{"gaol/gaol-a"}, self: "/user.slice/s.scope"},
		{name: "v2 stepped aside before", build: unifiedHost("/d.scope/gaol-self", "77"), version: 2, controls: all,
			paths: []string{"d.scope/gaol/gaol-a"}, self: "/d.scope/gaol-self"},
		{name: "v2 delegated scope", build: func(f *fake, find *finder) {
			unifiedHost("/user.slice/d.scope")(f, find)
			find.privileged = false
			f.denied[f.dir] = unix.EACCES
		}, version: 2, controls: all, paths: []string{"user.slice/d.scope/gaol/gaol-a"}, self: "/user.slice/d.scope/gaol-self"},
		{name: "v2 delegated without cpu", build: func(f *fake, _ *finder) {
			f.mount(2, "", "memory,pids", "/d.scope")
		}, version: 2, controls: []string{"memory", "pids"}, paths: []string{"d.scope/gaol/gaol-a"}, self: "/d.scope/gaol-self"},
		{name: "v2 real-time processes", build: func(f *fake, find *finder) {
			unifiedHost("/")(f, find)
			f.refuses = "cpu"
		}, version: 2, controls: []string{"memory", "pids"}, paths: []string{"gaol/gaol-a"}, self: "/"},
		{name: "v2 scope from systemd", build: func(f *fake, find *finder) {
			session(f, find)
			find.scopes = granted{f: f, group: "gaol-1.scope"}
		}, version: 2, controls: all, paths: []string{"user.slice/gaol-1.scope/gaol/gaol-a"}, self: "/user.slice/gaol-1.scope/gaol-self"},
		{name: "v2 user without systemd", build: session, self: "/user.slice/session-3.scope", cause: unix.EACCES},
		{name: "v2 systemd refuses", build: func(f *fake, find *finder) {
			session(f, find)
			find.scopes = granted{err: errNoBus}
		}, self: "/user.slice/session-3.scope", cause: errNoBus},
		{name: "v2 with parent", build: func(f *fake, find *finder) {
			unifiedHost("/user.slice/session-3.scope", "77")(f, find)
			find.Parent = "/op"
			must(f.mkdir(filepath.Join(f.dir, "op")))
		}, version: 2, controls: all, paths: []string{"op/gaol/gaol-a"}, self: "/user.slice/session-3.scope"},
		{name: "v2 parent out of reach", build: func(f *fake, find *finder) {
			session(f, find)
			find.Parent = "/op"
			delete(f.denied, f.dir)
			must(f.mkdir(filepath.Join(f.dir, "op")))
		}, self: "/user.slice/session-3.scope", cause: unix.EACCES},
		{name: "v2 parent missing", build: func(f *fake, find *finder) {
			unifiedHost("/")(f, find)
			find.Parent = "/op"
		}, self: "/", cause: fs.ErrNotExist},
		{name: "v2 container", build: func(f *fake, find *finder) {
			unifiedHost("/", "77")(f, find)
			f.denied[filepath.Join(f.dir, "cgroup.subtree_control")] = unix.EBUSY
		}, self: "/", cause: unix.EBUSY},
	}
}

func TestFind(t *testing.T) {
	for _, host := range hosts() {
		t.Run(host.name, func(t *testing.T) {
			f := newFake(t)
			find := f.finder()
			host.build(f, &find)
			h, err := find.find(t.Context())
			if host.self != "" {
				in, err := readMembership(f, filepath.Join(f.proc, "self/cgroup"))
				if err != nil || in[""] != host.self {
					t.Errorf("we are in %q, %v, want %q", in[""], err, host.self)
				}
			}
			if host.cause != nil {
				var why *Unavailable
				if !errors.Is(err, ErrUnavailable) || !errors.Is(err, host.cause) || !errors.As(err, &why) || why.Reason == "" || why.Fix == "" {
					t.Errorf("Find: %v, want unavailable because of %v", err, host.cause)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, dir := range h.Paths("gaol-a") {
				rel, _ := filepath.Rel(f.dir, dir)
				paths = append(paths, rel)
			}
			if h.Version() != host.version {
				t.Errorf("version %d, want %d", h.Version(), host.version)
			}
			if diff := cmp.Diff([][]string{host.controls, host.paths}, [][]string{h.Controls(), paths}); diff != "" {
				t.Errorf("controls and paths (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParentWithDots(t *testing.T) {
	_, err := Find(t.Context(), Config{Parent: "/a/../b"})
	if !errors.Is(err, ErrForeign) {
		t.Errorf("Find: %v", err)
	}
}
