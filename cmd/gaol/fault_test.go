package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// A run canceled at any moment, in the midst of its start too, says so and
// leaves nothing; sandboxes checks the latter at the end.
func TestCanceledAtAnyMoment(t *testing.T) {
	engine, request := sandboxes(t, "shell")
	why := errors.New("changed my mind")
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
