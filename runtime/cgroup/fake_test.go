package cgroup

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fake is a cgroup file system over plain files in a temporary directory,
// with the kernel's rules that matter here: control files come and go with
// their group, a group with members or groups inside stays, only a leaf may
// have members where controllers are handed on.
type fake struct {
	kernel
	t     *testing.T
	mu    sync.Mutex
	dir   string // what stands for /sys/fs/cgroup
	proc  string
	lines []string
	two   string // where version 2 is mounted

	denied  map[string]error  // by path: mkdir, write and writable fail
	held    map[string]string // by file name: what the kernel makes of any value written
	lacks   map[string]bool   // by file name: this kernel has no such file
	refuses string            // a controller that is not handed on
	onLeaf  func()            // called before a group inside gaol is made
}

const selfPid = 4242

func newFake(t *testing.T) *fake {
	t.Helper()
	top := t.TempDir()
	f := &fake{
		t:   t,
		dir: filepath.Join(top, "cgroup"), proc: filepath.Join(top, "proc"),
		denied: map[string]error{}, held: map[string]string{}, lacks: map[string]bool{},
	}
	for _, dir := range []string{f.dir, filepath.Join(f.proc, "self")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// mount adds a hierarchy with the controllers, in which we are in group own.
func (f *fake) mount(version int, name, controllers, own string) {
	f.t.Helper()
	point := filepath.Join(f.dir, name)
	kind, options, listed := "cgroup", "rw,"+controllers, controllers
	if version == 2 {
		kind, options, listed, f.two = "cgroup2", "rw", "", point
	}
	n := len(f.lines) + 30
	f.lines = append(f.lines, fmt.Sprintf("%d 25 0:%d / %s rw,nosuid shared:9 - %s %s %s", n, n, point, kind, kind, options))
	f.put(filepath.Join(f.proc, "self/mountinfo"), strings.Join(f.lines, "\n")+"\n")
	old, _ := os.ReadFile(filepath.Join(f.proc, "self/cgroup"))
	f.put(filepath.Join(f.proc, "self/cgroup"), string(old)+fmt.Sprintf("%d:%s:%s\n", n, listed, own))
	if err := os.MkdirAll(point, 0o755); err != nil {
		f.t.Fatal(err)
	}
	f.populate(point, strings.Split(controllers, ","), version)
	dir := point
	for _, part := range strings.Split(strings.Trim(own, "/"), "/") {
		if part == "" {
			continue
		}
		if version == 2 {
			f.put(filepath.Join(dir, "cgroup.subtree_control"), strings.ReplaceAll(controllers, ",", " "))
		}
		dir = filepath.Join(dir, part)
		if err := f.mkdir(dir); err != nil {
			f.t.Fatal(err)
		}
	}
	if version == 2 {
		f.put(filepath.Join(dir, "cgroup.procs"), fmt.Sprintf("%d\n", selfPid))
	}
}

func (f *fake) put(file, text string) {
	f.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) finder() finder {
	return finder{Config: Config{Mount: f.dir, Proc: f.proc}, fs: f, pid: selfPid, privileged: true}
}

// controlFiles are a new group's, with what they hold at first.
func controlFiles(version int) map[string]map[string]string {
	if version == 2 {
		return map[string]map[string]string{
			"": {"cgroup.procs": "", "cgroup.subtree_control": "", "cgroup.events": "populated 0\nfrozen 0\n", "cgroup.kill": "", "cpu.stat": "usage_usec 7000\nnr_throttled 2\nthrottled_usec 30\n"},
			"memory": {"memory.max": "max", "memory.swap.max": "max", "memory.oom.group": "0", "memory.peak": "4096\n",
				"memory.events": "low 0\nhigh 0\nmax 5\noom 1\noom_kill 3\noom_group_kill 1\n"},
			"cpu":  {"cpu.max": "max 100000"},
			"pids": {"pids.max": "max", "pids.peak": "12\n", "pids.events": "max 4\n"},
		}
	}
	return map[string]map[string]string{
		"": {"cgroup.procs": "", "tasks": ""},
		"memory": {"memory.limit_in_bytes": "9223372036854771712", "memory.memsw.limit_in_bytes": "9223372036854771712", "memory.swappiness": "60",
			"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "memory.max_usage_in_bytes": "4096\n"},
		"cpu":     {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1", "cpu.stat": "nr_periods 9\nnr_throttled 2\nthrottled_time 30000\n"},
		"cpuacct": {"cpuacct.usage": "7000000\n"},
		"pids":    {"pids.max": "max", "pids.peak": "12\n", "pids.events": "max 4\n"},
	}
}

func (f *fake) populate(dir string, controllers []string, version int) {
	for controller, files := range controlFiles(version) {
		for name, text := range files {
			if (controller == "" || slices.Contains(controllers, controller)) && !f.lacks[name] {
				must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
		}
	}
	list := "cgroup.controllers"
	if version == 1 {
		list = ".controllers"
	}
	must(os.WriteFile(filepath.Join(dir, list), []byte(strings.Join(controllers, " ")), 0o644))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (f *fake) isTwo(dir string) bool {
	_, ok := beneath(dir, f.two)
	return ok && f.two != ""
}

func (f *fake) mkdir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	parent := path.Dir(dir)
	if hook := f.onLeaf; hook != nil && path.Base(parent) == shared {
		hook()
	}
	if err := f.denied[parent]; err != nil {
		return pathError("mkdir", dir, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	list, version := ".controllers", 1
	if f.isTwo(dir) {
		list, version = "cgroup.subtree_control", 2
	}
	text, err := os.ReadFile(filepath.Join(parent, list))
	if err != nil {
		return err
	}
	f.populate(dir, strings.Fields(string(text)), version)
	return nil
}

func (f *fake) rmdir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	inside, err := f.children(dir)
	if err != nil {
		return err
	}
	text, err := f.read(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	if len(inside) > 0 || text != "" {
		return pathError("rmdir", dir, unix.EBUSY)
	}
	return os.RemoveAll(dir)
}

func (f *fake) writable(file string) error {
	if _, err := os.Stat(file); err != nil {
		return err
	}
	return pathError("write", file, f.denied[file])
}

func (f *fake) write(file, value string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.writable(file); err != nil {
		return err
	}
	if held, ok := f.held[filepath.Base(file)]; ok {
		value = held
	}
	dir := filepath.Dir(file)
	switch filepath.Base(file) {
	case "cgroup.subtree_control":
		return f.handOn(dir, strings.TrimPrefix(value, "+"))
	case "cgroup.procs":
		return f.move(dir, value)
	case "cgroup.kill":
		return os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o644)
	case "memory.oom_control":
		value = "oom_kill_disable " + value + "\nunder_oom 0\noom_kill 0\n"
	}
	return os.WriteFile(file, []byte(value+"\n"), 0o644)
}

func (f *fake) handOn(dir, controller string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	offered, _ := words(f, dir, "cgroup.controllers")
	procs, _ := words(f, dir, "cgroup.procs")
	handed, _ := words(f, dir, "cgroup.subtree_control")
	switch {
	case controller == f.refuses:
		return pathError("write", file, unix.EINVAL)
	case !slices.Contains(offered, controller):
		return pathError("write", file, unix.ENOENT)
	case len(procs) > 0 && dir != f.two:
		return pathError("write", file, unix.EBUSY)
	}
	return os.WriteFile(file, []byte(strings.Join(append(handed, controller), " ")+"\n"), 0o644)
}

func (f *fake) move(dir, pid string) error {
	err := filepath.WalkDir(f.two, func(file string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(file) != "cgroup.procs" {
			return err
		}
		pids, _ := words(f, filepath.Dir(file), "cgroup.procs")
		pids = slices.DeleteFunc(pids, func(p string) bool { return p == pid })
		if filepath.Dir(file) == dir {
			pids = append(pids, pid)
		}
		return os.WriteFile(file, []byte(strings.Join(pids, "\n")), 0o644)
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.proc, "self/cgroup"), []byte("0::/"+strings.TrimPrefix(strings.TrimPrefix(dir, f.two), "/")+"\n"), 0o644)
}

func (f *fake) await(file string, wish func(string) bool, most time.Duration) error {
	for end := time.Now().Add(most); ; time.Sleep(time.Millisecond) {
		text, err := f.read(file)
		if err != nil {
			return err
		}
		procs, err := words(f, filepath.Dir(file), "cgroup.procs")
		if err != nil {
			return err
		}
		if len(procs) > 0 {
			text = strings.Replace(text, "populated 0", "populated 1", 1)
		}
		if wish(text) || time.Now().After(end) {
			return nil
		}
	}
}

// left lists the groups of ours that exist.
func (f *fake) left(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(f.dir, func(dir string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), shared) {
			rel, _ := filepath.Rel(f.dir, dir)
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
