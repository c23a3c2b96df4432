package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// found is a hierarchy of version 1 or 2 on a fake host.
func found(t *testing.T, version int, prepare func(*fake)) (*Hierarchy, *fake) {
	t.Helper()
	f := newFake(t)
	if prepare != nil {
		prepare(f)
	}
	find := f.finder()
	if version == 1 {
		splitHost(f, &find)
	} else {
		unifiedHost("/d.scope")(f, &find)
	}
	h, err := find.find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h, f
}

var versions = map[int]string{1: "v1", 2: "v2"}

var small = Limits{Memory: 100<<20 + 17, CPUs: 1.5, Tasks: 300}

func TestNewSetsEveryLimit(t *testing.T) {
	want := map[int]map[string]string{
		1: {"memory.limit_in_bytes": "104857600", "memory.memsw.limit_in_bytes": "104857600", "memory.swappiness": "0",
			"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000", "pids.max": "300"},
		2: {"memory.max": "104857600", "memory.swap.max": "0", "memory.oom.group": "1", "cpu.max": "150000 100000", "pids.max": "300"},
	}
	for version, name := range versions {
		t.Run(name, func(t *testing.T) {
			h, f := found(t, version, nil)
			g, err := h.New("gaol-a", small)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(h.Paths("gaol-a"), g.paths); diff != "" {
				t.Errorf("paths (-announced +made):\n%s", diff)
			}
			got := map[string]string{}
			for name := range want[version] {
				for _, dir := range g.paths {
					if text, err := f.read(path.Join(dir, name)); err == nil {
						got[name] = strings.TrimSpace(text)
					}
				}
			}
			if diff := cmp.Diff(want[version], got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			if err := g.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			if err := g.Remove(t.Context()); err != nil {
				t.Errorf("again: %v", err)
			}
			left := f.left(t)
			if version == 2 {
				left = left[:0:0] // gaol-self holds us
			}
			if len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestOptionalFilesMayLack(t *testing.T) {
	for version, file := range map[int]string{1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"} {
		h, _ := found(t, version, func(f *fake) { f.lacks[file] = true })
		if _, err := h.New("gaol-a", small); err != nil {
			t.Errorf("without %s: %v", file, err)
		}
	}
}

func TestOomKillerIsTurnedOn(t *testing.T) {
	h, f := found(t, 1, nil)
	s := setting{file: "memory.oom_control", key: "oom_kill_disable", value: "0"}
	dir := path.Dir(path.Dir(h.Paths("gaol-a")[0]))
	f.put(path.Join(dir, s.file), "oom_kill_disable 1\nunder_oom 0\n")
	if err := s.apply(f, dir); err != nil {
		t.Fatal(err)
	}
	if held, err := s.held(f, path.Join(dir, s.file)); held != "0" || err != nil {
		t.Errorf("oom_kill_disable %q, %v", held, err)
	}
}

// A limit that the kernel does not hold as written must leave no group.
func TestNewFailsWhole(t *testing.T) {
	cases := []struct {
		name    string
		version int
		spoil   func(*fake)
		want    error
	}{
		{"v1 memory", 1, func(f *fake) { f.held["memory.limit_in_bytes"] = "4096" }, ErrReadBack},
		{"v1 memsw", 1, func(f *fake) { f.held["memory.memsw.limit_in_bytes"] = "9223372036854771712" }, ErrReadBack},
		{"v1 oom killer off", 1, func(f *fake) { f.held["memory.swappiness"] = "60" }, ErrReadBack},
		{"v1 quota", 1, func(f *fake) { f.held["cpu.cfs_quota_us"] = "-1" }, ErrReadBack},
		{"v1 pids", 1, func(f *fake) { f.held["pids.max"] = "max" }, ErrReadBack},
		{"v1 pids missing", 1, func(f *fake) { f.lacks["pids.max"] = true }, fs.ErrNotExist},
		{"v2 memory", 2, func(f *fake) { f.held["memory.max"] = "max" }, ErrReadBack},
		{"v2 swap", 2, func(f *fake) { f.held["memory.swap.max"] = "max" }, ErrReadBack},
		{"v2 oom group", 2, func(f *fake) { f.held["memory.oom.group"] = "0" }, ErrReadBack},
		{"v2 cpu", 2, func(f *fake) { f.held["cpu.max"] = "max 100000" }, ErrReadBack},
		{"v2 cpu missing", 2, func(f *fake) { f.lacks["cpu.max"] = true }, fs.ErrNotExist},
		{"v2 pids", 2, func(f *fake) { f.held["pids.max"] = "299" }, ErrReadBack},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h, f := found(t, c.version, nil)
			before := f.left(t)
			c.spoil(f)
			if _, err := h.New("gaol-a", small); !errors.Is(err, c.want) {
				t.Errorf("New: %v, want %v", err, c.want)
			}
			if diff := cmp.Diff(before, f.left(t)); diff != "" {
				t.Errorf("groups (-before +after):\n%s", diff)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for version, name := range versions {
		t.Run(name, func(t *testing.T) {
			h, f := found(t, version, nil)
			before := f.left(t)
			for _, name := range []string{"", "a", "gaol-", "gaol-self", "gaol-a/b", "gaol-../b", "../gaol-a", "gaol-a\n", "gaol-" + strings.Repeat("x", 100)} {
				if _, err := h.New(name, small); !errors.Is(err, ErrName) {
					t.Errorf("New(%q): %v", name, err)
				}
			}
			for _, l := range []Limits{{}, {CPUs: 1, Tasks: 1}, {Memory: 4095, CPUs: 1, Tasks: 1}, {Memory: 1 << 20, Tasks: 1}, {Memory: 1 << 20, CPUs: 1},
				{Memory: -1, CPUs: 1, Tasks: 1}, {Memory: 1 << 20, CPUs: 0.001, Tasks: 1}, {Memory: 1 << 20, CPUs: 1, Tasks: -1}, {Memory: 1 << 20, CPUs: 1, Tasks: 1 << 30}} {
				if _, err := h.New("gaol-a", l); !errors.Is(err, ErrLimit) {
					t.Errorf("New(%+v): %v", l, err)
				}
			}
			if diff := cmp.Diff(before, f.left(t)); diff != "" {
				t.Errorf("groups (-before +after):\n%s", diff)
			}
		})
	}
}

// A name in use belongs to somebody: their group must survive our attempt.
func TestNameInUse(t *testing.T) {
	for version, name := range versions {
		t.Run(name, func(t *testing.T) {
			h, f := found(t, version, nil)
			if _, err := h.New("gaol-a", small); err != nil {
				t.Fatal(err)
			}
			before := f.left(t)
			if _, err := h.New("gaol-a", small); !errors.Is(err, fs.ErrExist) {
				t.Errorf("New: %v", err)
			}
			if diff := cmp.Diff(before, f.left(t)); diff != "" {
				t.Errorf("groups (-before +after):\n%s", diff)
			}
		})
	}
}

// Another process removes the shared parent between our two steps.
func TestSharedParentVanishes(t *testing.T) {
	for version, name := range versions {
		t.Run(name, func(t *testing.T) {
			h, f := found(t, version, nil)
			times := 3
			f.onLeaf = func() {
				if times--; times >= 0 {
					must(os.RemoveAll(h.branches[0].parent()))
				}
			}
			if _, err := h.New("gaol-a", small); err != nil || times >= 0 {
				t.Errorf("New: %v with %d removals to come", err, times)
			}
		})
	}
}

func TestRemoveWaits(t *testing.T) {
	for version, name := range versions {
		t.Run(name, func(t *testing.T) {
			h, f := found(t, version, nil)
			g, err := h.New("gaol-a", small)
			if err != nil {
				t.Fatal(err)
			}
			procs := filepath.Join(g.paths[0], "cgroup.procs")
			f.put(procs, "99999999\n") // more than any kernel gives out
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := g.Remove(ctx); !errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Remove of a group in use: %v", err)
			}
			done := make(chan error, 1)
			go func() { done <- g.Remove(t.Context()) }()
			f.put(procs, "")
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// One tree whose group stays must keep neither the others' groups nor the
// descriptor.
func TestRemoveGoesOnAfterAnError(t *testing.T) {
	for version, name := range versions {
		t.Run(name, func(t *testing.T) {
			h, f := found(t, version, nil)
			g, err := h.New("gaol-a", small)
			if err != nil {
				t.Fatal(err)
			}
			f.put(filepath.Join(g.paths[0], "cgroup.procs"), "99999999\n")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := g.Remove(ctx); !errors.Is(err, ErrBusy) || !errors.Is(err, context.Canceled) {
				t.Errorf("Remove of a group in use: %v", err)
			}
			for _, dir := range g.paths[1:] {
				if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is left: %v", dir, err)
				}
			}
			if g.dir != nil {
				t.Error("the group is still open")
			}
			f.put(filepath.Join(g.paths[0], "cgroup.procs"), "")
			if err := g.Remove(t.Context()); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// A tree with a process that cannot be killed must not spare one in another.
func TestKillGoesOnAfterAnError(t *testing.T) {
	h, f := found(t, 1, nil)
	g, err := h.New("gaol-a", small)
	if err != nil {
		t.Fatal(err)
	}
	victim := exec.Command("/bin/sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	f.put(filepath.Join(g.paths[0], "cgroup.procs"), "99999999\n")
	f.put(filepath.Join(g.paths[len(g.paths)-1], "cgroup.procs"), strconv.Itoa(victim.Process.Pid)+"\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Kill(ctx); !errors.Is(err, ErrBusy) {
		t.Errorf("Kill: %v", err)
	}
	_ = victim.Wait()
	if status, _ := victim.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("victim ended as %v", victim.ProcessState)
	}
}

func TestKillReportsWhatLives(t *testing.T) {
	h, f := found(t, 1, nil)
	g, err := h.New("gaol-a", small)
	if err != nil {
		t.Fatal(err)
	}
	f.put(filepath.Join(g.paths[0], "cgroup.procs"), "99999999\n")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := g.Kill(ctx); !errors.Is(err, ErrBusy) {
		t.Errorf("Kill: %v", err)
	}
}

func TestUsage(t *testing.T) {
	want := Usage{CPU: 7 * time.Millisecond, MemoryPeak: 4096, OOMKills: 3, TasksPeak: 12, TaskRefusals: 4, ThrottledPeriods: 2, Throttled: 30 * time.Microsecond}
	for version, name := range versions {
		t.Run(name, func(t *testing.T) {
			h, f := found(t, version, nil)
			g, err := h.New("gaol-a", small)
			if err != nil {
				t.Fatal(err)
			}
			got, err := g.Usage()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
			for _, dir := range g.paths { // a counter that makes no sense is an error, never a zero
				for _, name := range []string{"memory.oom_control", "memory.events"} {
					if _, err := f.read(path.Join(dir, name)); err == nil {
						f.put(path.Join(dir, name), "oom_kill many\n")
					}
				}
			}
			if _, err := g.Usage(); err == nil {
				t.Error("no error for a counter that is no number")
			}
		})
	}
}

func TestPlace(t *testing.T) {
	h, _ := found(t, 2, nil)
	g, err := h.New("gaol-a", small)
	if err != nil {
		t.Fatal(err)
	}
	var attr syscall.SysProcAttr
	g.Place(&attr)
	if !attr.UseCgroupFD {
		t.Fatal("not placed")
	}
	link, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(attr.CgroupFD)))
	if err != nil || link != g.paths[0] {
		t.Errorf("descriptor of %s, %v", link, err)
	}
	if err := g.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	var after unix.Stat_t
	if err := unix.Fstat(attr.CgroupFD, &after); !errors.Is(err, unix.EBADF) {
		t.Errorf("descriptor still open: %v", err)
	}
}
