package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
)

// A run canceled at any moment, in the midst of its start too, says so and
// leaves nothing; sandboxes checks the latter at the end.
func TestCanceledAtAnyMoment(t *testing.T) {
	engine, request := sandboxes(t, "shell")
	why := errors.New("changed my mind")
	before := len(runscProcesses(t))
	for i := range 25 {
		// The moment is the point: it moves through the whole start.
		ctx, cancel := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(time.Duration(i)*10*time.Millisecond, func() { cancel(why) })
		req := request()
		req.Command = []string{"sleep", "60"}
		r, err := engine.Run(ctx, req)
		timer.Stop()
		switch {
		case err != nil && !errors.Is(err, why):
			t.Errorf("canceled after %d ms: %v", 10*i, err)
		case err == nil && r.Outcome != runtime.Canceled:
			t.Errorf("canceled after %d ms: %s", 10*i, r.Outcome)
		}
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	if left := runscProcesses(t); len(left) > before {
		t.Errorf("%d children before, now\n%s", before, strings.Join(left, "\n"))
	}
}

// A full disk is an error that names it, and nothing half-made stays.
func TestFullStateDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	needSandbox(t)
	dir := stateDir(t)
	disk := filepath.Join(dir, "s")
	if err := os.Mkdir(disk, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256k,mode=711"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	engine, err := runtime.Open(t.Context(), runtime.Config{State: disk, Runsc: testRunsc(), IDs: runtime.IDRange{First: 1879048192, Last: 1879113727}})
	if err != nil {
		t.Fatal(err)
	}
	rootfs, err := testStore(t).Resolve(t.Context(), "shell")
	if err != nil {
		t.Fatal(err)
	}
	defer rootfs.Close()
	_, request := sandboxes(t, "shell")
	// Ever fuller, until nothing fits.
	for i := range 80 {
		req := request()
		req.Command = []string{"true"}
		r, err := engine.Run(t.Context(), req)
		switch {
		case err == nil && r.Outcome != runtime.Exited:
			t.Errorf("with %d KiB taken: %s", 4*i, r.Outcome)
		case err != nil && !errors.Is(err, syscall.ENOSPC):
			t.Logf("with %d KiB taken: %v", 4*i, err) // runsc's own account of it
		}
		if err := engine.Close(); err != nil {
			t.Errorf("with %d KiB taken: %v", 4*i, err)
		}
		if left := leftovers(dir); len(left) > 0 {
			t.Fatalf("with %d KiB taken, left behind: %v", 4*i, left)
		}
		if os.WriteFile(filepath.Join(disk, "fill"+time.Now().Format("150405.000000000")), make([]byte, 4<<10), 0o600) != nil {
			break
		}
	}
}

// Files without a name count against the workspace's limit as well.
func TestUnlinkedFilesCount(t *testing.T) {
	engine, request := sandboxes(t, "python")
	req := python(request(), `
import os, time
files = []
for i in range(8):
    f = open(f"f{i}", "wb", buffering=0); os.unlink(f"f{i}"); files.append(f)
    f.write(bytes(12 << 20))
time.sleep(20)
`)
	req.Policy.Limits.Workspace = 32 * policy.MiB
	r, err := engine.Run(t.Context(), req)
	if err != nil || r.Outcome != runtime.DiskLimit {
		t.Errorf("outcome %+v, %v", r, err)
	}
}

// C4: memory that a child ran out of is no end of the program itself.
func TestChildOutOfMemory(t *testing.T) {
	if !haveCgroup() {
		t.Skip("the kernel kills a part of a sandbox only in a cgroup; needs root")
	}
	engine, request := sandboxes(t, "python")
	req := python(request(), `
import subprocess, sys
hog = "a=[]\nwhile True: a.append(bytearray(10_000_000))"
p = subprocess.run([sys.executable, "-c", hog])
print("child", p.returncode)
sys.exit(3)
`)
	req.Policy.Limits.Memory = 200 * policy.MiB
	r, err := engine.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	// The kernel chooses what to kill: the child's memory, or the sandbox.
	switch r.Outcome {
	case runtime.Exited:
		if r.ExitCode != 3 || r.Usage.OOMKills == 0 {
			t.Errorf("exit %d, %d oom kills, stdout %q", r.ExitCode, r.Usage.OOMKills, r.Stdout.Bytes())
		}
	case runtime.OOM:
	default:
		t.Errorf("outcome %s", r.Outcome)
	}
}

// What was locked in a workspace before the run is locked after it.
func TestWorkspaceModesStay(t *testing.T) {
	engine, request := sandboxes(t, "shell")
	dir := t.TempDir()
	modes := map[string]os.FileMode{"closed": 0, "readonly": 0o555, "blind": 0o300, "listed": 0o400}
	for name, mode := range modes {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for name := range modes {
			_ = os.Chmod(filepath.Join(dir, name), 0o700)
		}
	})
	req := request()
	req.Command, req.Workspace = []string{"sleep", "0.3"}, openWorkspace(t, dir)
	if r, err := engine.Run(t.Context(), req); err != nil || r.Outcome != runtime.Exited {
		t.Fatalf("outcome %+v, %v", r, err)
	}
	for name, mode := range modes {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s was %o and is %o", name, mode, info.Mode().Perm())
		}
	}
}

// A state directory behind a link is one directory, whatever it is called.
func TestStateBehindLink(t *testing.T) {
	needSandbox(t)
	dir := stateDir(t)
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	out, err := gaolCommand(t, dir, "run", "-q", "--image", "shell", "--", "echo", "fine").CombinedOutput()
	if err != nil || string(out) != "fine\n" {
		t.Errorf("printed %q: %v", out, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "real")); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("the directory behind the link is now %v, %v", info.Mode(), err)
	}
}

// What JSON would change without a word is refused.
func TestBytesThatAreNoTextAreRefused(t *testing.T) {
	engine, request := sandboxes(t, "shell")
	for _, change := range []func(*runtime.Request){
		func(r *runtime.Request) { r.Command = []string{"echo", "\xff"} },
		func(r *runtime.Request) { r.Command, r.Env = []string{"env"}, []string{"A=\xff"} },
		func(r *runtime.Request) { r.Code = &runtime.Code{Name: "a\xff.py"} },
		func(r *runtime.Request) { r.Code = &runtime.Code{Name: "a.py", Args: []string{"\xff"}} },
	} {
		req := request()
		change(&req)
		if _, err := engine.Run(t.Context(), req); !errors.Is(err, runtime.ErrBadRequest) {
			t.Errorf("%q %q: %v", req.Command, req.Env, err)
		}
	}
}

// B3: the CPU quota holds over seconds, by the kernel's own count.
func TestCPUQuotaHolds(t *testing.T) {
	if !haveCgroup() {
		t.Skip("part of a processor needs a cgroup, and here that needs root")
	}
	engine, request := sandboxes(t, "python")
	req := python(request(), "import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: pass\n")
	req.Policy.Limits.CPUs = 0.5
	r, err := engine.Run(t.Context(), req)
	if err != nil || r.Outcome != runtime.Exited {
		t.Fatalf("outcome %+v, %v", r, err)
	}
	// The count has gVisor's start in it, which the wall time has not.
	whole := r.Usage.Wall
	for _, s := range r.Stages {
		if s.Name == "create" {
			whole += s.Took
		}
	}
	t.Logf("%s of CPU time in %s", r.Usage.CPU, whole)
	if quota := whole / 2; r.Usage.CPU > quota+quota/10 {
		t.Errorf("used %s of CPU time in %s, allowed is half", r.Usage.CPU, whole)
	}
}
