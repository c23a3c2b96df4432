package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gaol/policy"
	"gaol/runtime"
)

// gaolCommand is the real main with its state beneath dir, as another process.
func gaolCommand(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, []byte(testConfig(dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("gaol")
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), path, append([]string{"--config", config}, args...)...)
}

// stateDir is a directory that sandboxes' host ids can reach, with a path that
// leaves room for the name of a socket.
func stateDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gaol-") //nolint:usetesting // t.TempDir is too long for a socket, and closed to host ids
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// B1, B4: a program that floods both streams for ten seconds does not make
// gaol's own memory grow.
func TestFloodLeavesMemoryFlat(t *testing.T) {
	needSandbox(t)
	dir := stateDir(t)
	flood := filepath.Join(dir, "flood.py")
	source := "import os\nwhile True: os.write(1,b'A'*65536); os.write(2,b'B'*65536)\n"
	if err := os.WriteFile(flood, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := gaolCommand(t, dir, "run", "--json", "--timeout", "10s", flood)
	// The program that people run: a test binary under the race detector
	// holds twice as much.
	cmd.Path = filepath.Join(filepath.Dir(testRunsc()), "gaol")
	config := []byte(testConfig(dir) + "[limits]\noutput_total = \"1TiB\"\n")
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err == nil {
		t.Fatal("a program that never ends exited 0")
	}
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	outcome := strings.SplitN(out.String(), ",", 2)[0]
	t.Logf("%s, gaol's own peak memory %s", outcome, bytesText(peak))
	if !strings.Contains(outcome, `"timeout"`) {
		t.Errorf("ended with %s", outcome)
	}
	if limit := int64(64 << 20); peak > limit {
		t.Errorf("gaol held %s, more than %s", bytesText(peak), bytesText(limit))
	}
}

// maxOvershoot is how far past its memory limit a program may get before the
// watchdog stops it: many times what was ever measured here (3 MiB).
const maxOvershoot = 64 * policy.MiB

// B1, D7: where no cgroup holds the memory limit the watchdog does; this
// measures how far past it a program gets that takes memory as fast as it can.
func TestWatchdogOvershoot(t *testing.T) {
	if haveCgroup() {
		t.Skip("a cgroup holds the limit for this user; run as an ordinary user")
	}
	engine, request := sandboxes(t, "python")
	const limit = 256 * policy.MiB
	var worst int64
	for range 3 {
		req := python(request(), "b = bytearray(1 << 30)\nb[::4096] = b'x' * len(b[::4096])\nprint('survived')\n")
		req.Policy.Limits.Memory = limit
		r, err := engine.Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome != runtime.OOM {
			t.Fatalf("outcome %s, stdout %q", r.Outcome, r.Stdout.Bytes())
		}
		worst = max(worst, r.Usage.MemoryPeak-int64(limit))
	}
	t.Logf("limit %s, worst overshoot of the watchdog in 3 runs: %s", limit, bytesText(worst))
	if worst > int64(maxOvershoot) {
		t.Errorf("the watchdog let %s pass beyond %s, more than %s", bytesText(worst), limit, maxOvershoot)
	}
}

// I3, H5: two hundred runs of all kinds leave the host as it was.
func TestTwoHundredRunsLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	engine, request := sandboxes(t, "shell")
	_, withPython := sandboxes(t, "python")
	run := func(i int) {
		t.Helper()
		req, want := mixed(i, request(), withPython())
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if want == runtime.Canceled {
			ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		}
		defer cancel()
		r, err := engine.Run(ctx, req)
		if err != nil && (want != runtime.Canceled || ctx.Err() == nil) {
			t.Fatalf("run %d: %v", i, err)
		}
		if err == nil && r.Outcome != want {
			t.Fatalf("run %d: %s, want %s: %s", i, r.Outcome, want, r.Stderr.Bytes())
		}
	}
	run(0) // what is made once and stays is no leak
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	before := hostState(t)
	ignore := goleak.IgnoreCurrent()
	for i := range 200 {
		run(i)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	after := hostState(t)
	for range 100 {
		// Finalizers close descriptors when they please.
		if after["descriptors"] == before["descriptors"] {
			break
		}
		time.Sleep(20 * time.Millisecond)
		after = hostState(t)
	}
	for name, was := range before {
		if name == "which" && after["descriptors"] == before["descriptors"] {
			continue // numbers of pipes differ
		}
		if name == "cgroups" {
			for group := range strings.Lines(after[name]) {
				if !strings.Contains(was, group) { // what was there may have been another gaol's
					t.Errorf("left the cgroup %s", group)
				}
			}
			continue
		}
		if now := after[name]; now != was {
			t.Errorf("%s: before\n%s\nafter\n%s", name, was, now)
		}
	}
	goleak.VerifyNone(t, ignore)
}

// mixed is the i-th of a mix of requests, and how it must end.
func mixed(i int, shell, py runtime.Request) (runtime.Request, runtime.Outcome) {
	shell.Command = []string{"sh", "-c", "echo fine"}
	switch i % 10 {
	case 1:
		shell.Command = []string{"sh", "-c", "kill -SEGV $$"}
		return shell, runtime.Signaled
	case 2:
		shell.Command = []string{"sleep", "60"}
		shell.Policy.Limits.Timeout = policy.Duration(200 * time.Millisecond)
		return shell, runtime.Timeout
	case 3:
		py = python(py, "a = []\nwhile True: a.append(bytearray(10_000_000))\n")
		py.Policy.Limits.Memory = 128 * policy.MiB
		return py, runtime.OOM
	case 4:
		shell.Command = []string{"sh", "-c", "while true; do echo flood; done"}
		shell.Policy.Limits.OutputTotal = 64 * policy.KiB
		return shell, runtime.OutputLimit
	case 5:
		shell.Command = []string{"sleep", "60"}
		return shell, runtime.Canceled
	case 6:
		shell.Command = []string{"no-such-program"}
		return shell, runtime.StartFailed
	case 7:
		shell.Command = []string{"sh", "-c", "for i in 1 2 3; do dd if=/dev/zero of=big$i bs=1M count=4; done; sleep 5"}
		shell.Policy.Limits.Workspace = 8 * policy.MiB
		return shell, runtime.DiskLimit
	}
	return shell, runtime.Exited
}

// hostState is what a leak would change.
func hostState(t testing.TB) map[string]string {
	t.Helper()
	state := map[string]string{"processes": strings.Join(runscProcesses(t), "\n"), "cgroups": "", "mounts": ""}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		// Those of sandboxes: other tests mount things of their own meanwhile.
		if strings.Contains(line, "/s/run/") {
			state["mounts"] += line
		}
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "gaol-") {
			state["cgroups"] += path + "\n"
		}
		return nil // a group of others that went meanwhile
	})
	if err != nil {
		t.Fatal(err)
	}
	goruntime.GC() // descriptors that only a finalizer closes
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	state["descriptors"] = fmt.Sprint(len(fds))
	for _, fd := range fds {
		target, _ := os.Readlink("/proc/self/fd/" + fd.Name())
		state["which"] += fd.Name() + " " + target + "\n"
	}
	sockets, _ := filepath.Glob("/tmp/runsc-*.sock")
	state["sockets"] = strings.Join(sockets, "\n")
	return state
}

// runscProcesses are the sandbox processes that are children of this one.
func runscProcesses(t testing.TB) []string {
	t.Helper()
	var found []string
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		line, _ := bufio.NewReader(f).ReadString('\n')
		_ = f.Close()
		fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
		if len(fields) > 1 && fields[1] == fmt.Sprint(os.Getpid()) {
			found = append(found, line)
		}
	}
	return found
}

// A11, I2: killed at any moment, gaol leaves nothing that the next command does
// not remove.
func TestKilledAtAnyMoment(t *testing.T) {
	needSandbox(t)
	dir := stateDir(t)
	groups := map[string]bool{}
	for i := range 25 {
		cmd := gaolCommand(t, dir, "run", "--image", "shell", "--", "sleep", "60")
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The moment is the point: it moves through the whole start.
		time.Sleep(time.Duration(i) * 10 * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for _, group := range recordedGroups(t, dir) {
			groups[group] = true
		}
	}
	if haveCgroup() && len(groups) == 0 {
		t.Error("no kill came after a cgroup was made")
	}
	if out, err := gaolCommand(t, dir, "gc").CombinedOutput(); err != nil {
		t.Fatalf("gc: %v: %s", err, out)
	} else {
		t.Logf("%s", bytes.TrimSpace(out))
	}
	if left := leftovers(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for group := range groups {
		if _, err := os.Stat(group); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("cgroup left behind: %s (%v)", group, err)
		}
	}
	if out, err := gaolCommand(t, dir, "run", "-q", "--image", "shell", "--", "echo", "fine").Output(); err != nil || string(out) != "fine\n" {
		t.Errorf("the next run printed %q: %v", out, err)
	}
}

// recordedGroups are the cgroups of the sandboxes beneath dir, by their owners'
// records.
func recordedGroups(t testing.TB, dir string) []string {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(dir, "s/run/*/owner.json"))
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for _, path := range records {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var owner struct {
			Cgroups []string `json:"cgroups"`
		}
		if err := json.Unmarshal(data, &owner); err != nil {
			t.Fatal(err)
		}
		groups = append(groups, owner.Cgroups...)
	}
	return groups
}

// A10: whoever reads the output of a run meets its end when the run ends, even
// if the program left a child behind that holds its own end open.
func TestOutputEnds(t *testing.T) {
	needSandbox(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := gaolCommand(t, stateDir(t), "run", "-q", "--timeout", "60s", "--image", "shell", "--", "sh", "-c", "setsid sleep 60 & echo started")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	deadline, _ := ctx.Deadline()
	if err := read.SetReadDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(read)
	if err != nil || string(out) != "started\n" {
		t.Errorf("read %q: %v", out, err)
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
