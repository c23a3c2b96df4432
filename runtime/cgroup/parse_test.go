package cgroup

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const hybridMounts = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:7 master:1 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/uni\040fied rw,relatime - cgroup2 cgroup2 rw,nsdelegate
42 31 0:39 / /other rw - cgroup cgroup rw,pids
43 31 0:40 / /sys/fs/cgroup2 rw - cgroup2 cgroup2 rw
44 31 0:41 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
45 31 0:42 / /sys/fs/cgroup/pids rw - tmpfs tmpfs rw
`

func TestParseMounts(t *testing.T) {
	got, err := parseMounts(hybridMounts, "/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	want := []mount{
		{point: "/sys/fs/cgroup/cpu,cpuacct", root: "/", version: 1, controllers: []string{"rw", "cpu", "cpuacct"}},
		{point: "/sys/fs/cgroup/memory", root: "/docker/ab", version: 1, controllers: []string{"rw", "memory"}},
		{point: "/sys/fs/cgroup/uni fied", root: "/", version: 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mount{})); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"x", "31 23 0:28 / /sys/fs/cgroup rw - cgroup", "31 23 0:28 / /m rw cgroup cgroup rw"} {
		if got, err := parseMounts(bad, "/"); err == nil {
			t.Errorf("parseMounts(%q) = %v", bad, got)
		}
	}
}

func TestMountDir(t *testing.T) {
	cases := []struct {
		root, group, dir string
		visible          bool
	}{
		{"/", "/", "/m", true},
		{"/", "/a/b", "/m/a/b", true},
		{"/a", "/a", "/m", true},
		{"/a", "/a/b", "/m/b", true},
		{"/a", "/ab", "", false},
		{"/a", "/", "", false},
		{"/..", "/", "", false},
		{"/", "", "", false},
	}
	for _, c := range cases {
		dir, visible := mount{point: "/m", root: c.root}.dir(c.group)
		if visible != c.visible || visible && dir != c.dir {
			t.Errorf("group %q of root %q: %q, %v", c.group, c.root, dir, visible)
		}
	}
}

func TestParseMembership(t *testing.T) {
	got, err := parseMembership("4:memory:/box\n2:cpu,cpuacct:/\n9:name=systemd:/a:b\n0::/u\n")
	if err != nil {
		t.Fatal(err)
	}
	want := membership{"memory": "/box", "cpu": "/", "cpuacct": "/", "name=systemd": "/a:b", "": "/u"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("membership (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"4:memory", "4:memory:relative", "x"} {
		if got, err := parseMembership(bad); err == nil {
			t.Errorf("parseMembership(%q) = %v", bad, got)
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add(hybridMounts, "/sys/fs/cgroup")
	f.Add("31 23 0:28 / / rw - cgroup2 x rw\n", "/")
	f.Fuzz(func(t *testing.T, text, top string) {
		mounts, err := parseMounts(text, top)
		if err != nil && mounts != nil {
			t.Error("both mounts and an error")
		}
		for _, m := range mounts {
			if _, ok := beneath(m.point, top); !ok || m.version < 1 || m.version > 2 {
				t.Errorf("%+v is not a hierarchy below %q", m, top)
			}
		}
	})
}

func FuzzParseMembership(f *testing.F) {
	f.Add("4:memory:/box\n2:cpu,cpuacct:/\n0::/u\n")
	f.Fuzz(func(t *testing.T, text string) {
		in, err := parseMembership(text)
		if err != nil {
			return
		}
		for controller, group := range in {
			if !strings.HasPrefix(group, "/") {
				t.Errorf("%q is in %q", controller, group)
			}
		}
	})
}

func FuzzCounter(f *testing.F) {
	f.Add("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
	f.Add("oom_kill -1")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/memory.events", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := counter{file: "memory.events", word: "oom_kill", needed: true}.count(kernel{}, dir)
		if err == nil && !strings.Contains(text, "oom_kill") {
			t.Errorf("%d from nothing", n)
		}
	})
}

// Memory is never more than was asked and less by a page at most; CPU time is
// right to the microsecond.
func TestLimitsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			Memory: rapid.Int64Min(int64(os.Getpagesize())).Draw(t, "memory"),
			CPUs:   rapid.Float64Range(0.01, 1024).Draw(t, "cpus"),
			Tasks:  rapid.IntRange(1, 4<<20).Draw(t, "tasks"),
		}
		if err := l.check(); err != nil {
			t.Fatal(err)
		}
		memory, err := strconv.ParseInt(l.memory(), 10, 64)
		if err != nil || memory > l.Memory || memory <= l.Memory-int64(os.Getpagesize()) || memory%int64(os.Getpagesize()) != 0 {
			t.Errorf("memory %s for %d", l.memory(), l.Memory)
		}
		quota, err := strconv.ParseFloat(l.quota(), 64)
		if err != nil || quota < 1000 || quota/period-l.CPUs > 1e-5 || l.CPUs-quota/period > 1e-5 {
			t.Errorf("quota %s for %v", l.quota(), l.CPUs)
		}
	})
}
