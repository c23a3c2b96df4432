package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also the other process: it runs one verb and ends.
const childVerb = "GAOL_IMAGES_TEST_VERB"

func TestMain(m *testing.M) {
	if verb := os.Getenv(childVerb); verb != "" {
		if err := child(strings.Fields(verb)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs "verb root name"; what it needs to read comes from stdin.
func child(args []string) error {
	s, err := Open(Config{Root: args[1]})
	if err != nil {
		return err
	}
	ctx := context.Background()
	switch args[0] {
	case "import":
		_, err = s.Import(ctx, os.Stdin, ImportOptions{Reference: args[2]})
	case "resolve":
		var r *Rootfs
		if r, err = s.Resolve(ctx, args[2]); err == nil {
			defer r.Close()
			if _, err = io.ReadAll(r.File()); err == nil {
				_, err = os.Stat(r.Path)
			}
		}
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
	case "list":
		_, err = s.List(ctx)
	case "prune":
		_, err = s.Prune(ctx)
	case "remove":
		if err = s.Remove(ctx, args[2]); errors.Is(err, ErrNotFound) {
			err = nil
		}
	case "hold":
		var held *os.File
		if held, err = flock(ctx, s.own.gcLock(), unix.LOCK_EX, time.Minute); err == nil {
			defer held.Close()
			fmt.Println("held")
			_, err = io.Copy(io.Discard, os.Stdin)
		}
	}
	return err
}

func childCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVerb+"="+strings.Join(args, " "))
	return cmd
}

// Cases H9 and D7: many processes at once, all kinds of verbs, none fails,
// none hangs, and the store is whole afterwards.
func TestManyProcesses(t *testing.T) {
	s := newStore(t)
	root := s.own.root
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	run := func(stdin []byte, args ...string) {
		wg.Go(func() {
			cmd := childCommand(ctx, args...)
			cmd.Stdin = bytes.NewReader(stdin)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v: %s", args, err, out)
			}
		})
	}
	for i := range 4 {
		same := simple("x", picture{})
		other := simple("x", picture{layers: [][]byte{tarOf(file{name: fmt.Sprint("file", i), data: make([]byte, 1<<20)})}})
		run(same, "import", root, "same")
		run(other, "import", root, fmt.Sprint("other", i))
		run(nil, "resolve", root, "same")
		run(nil, "list", root)
		run(nil, "prune", root)
		run(nil, "remove", root, "other0")
	}
	wg.Wait()
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("verify: %v %v", problems, err)
	}
	for _, name := range []string{"same", "other1", "other2", "other3"} {
		if r, err := s.Resolve(t.Context(), name); err != nil {
			t.Error(err)
		} else {
			r.Close()
		}
	}
	if _, err := s.Prune(t.Context()); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLockNamesItsHolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s := openStore(t, Config{Root: root, LockTimeout: 50 * time.Millisecond})
	if err := s.own.create(); err != nil {
		t.Fatal(err)
	}
	cmd := childCommand(t.Context(), "hold", root)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("held\n"))); err != nil {
		t.Fatal(err)
	}
	_, err = s.Prune(t.Context())
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("prune: %v, holder is %d", err, cmd.Process.Pid)
	}
	_, err = s.Import(t.Context(), bytes.NewReader(simple("x", picture{})), ImportOptions{})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("import: %v", err)
	}
	// What runs and what only looks is not held up.
	if _, err := s.List(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Resolve(t.Context(), "x"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := s.Prune(t.Context()); err != nil {
		t.Errorf("after: %v", err)
	}
}

// Case H10: a process is killed at a different point of its input each time.
func TestKilledImportBlocksNobody(t *testing.T) {
	s := newStore(t)
	l := newLayout()
	archive := l.add("x", l.image(picture{layers: [][]byte{
		tarOf(file{name: "a", data: make([]byte, 2<<20)}), tarOf(file{name: "b", data: make([]byte, 2<<20)}),
	}})).tar()
	for part := 1; part <= 8; part++ {
		cmd := childCommand(t.Context(), "import", s.own.root, "x")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The write returns once the child has taken nearly all of it.
		if _, err := stdin.Write(archive[:len(archive)*part/8-1]); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
	}
	if all, err := s.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("half an image: %v, %v", all, err)
	}
	if _, err := s.Import(t.Context(), bytes.NewReader(archive), ImportOptions{}); err != nil {
		t.Fatalf("import after kills: %v", err)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("verify: %v %v", problems, err)
	}
	if err := s.Remove(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	checkEmpty(t, s)
}

func TestCanceledImportLeavesNothing(t *testing.T) {
	s := newStore(t)
	archive := simple("x", picture{layers: [][]byte{tarOf(file{name: "a", data: make([]byte, 1<<20)})}})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		// The pipe stays open: only ctx can end the import.
		_, _ = w.Write(archive[:len(archive)/2])
		cancel()
	}()
	if _, err := s.Import(ctx, r, ImportOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	checkEmpty(t, s)
}

// Case D7: the disk is full half way.
func TestFullDiskLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a small tmpfs needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	// Detached: containerd's test for fs-verity keeps a file open until it is
	// collected, and such a file system is busy.
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	s := openStore(t, Config{Root: filepath.Join(dir, "store")})
	// Random-looking, so that the layer and the rootfs take their full size.
	for name, size := range map[string]int{"blob does not fit": 4 << 20, "rootfs does not fit": 2 << 20} {
		archive := simple("x", picture{layers: [][]byte{tarOf(file{name: "a", data: bytes.Repeat([]byte("0123456789abcde"), size/15)})}})
		if _, err := s.Import(t.Context(), bytes.NewReader(archive), ImportOptions{}); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: %v", name, err)
		}
		checkEmpty(t, s)
	}
	add(t, s, "small", picture{})
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("verify: %v %v", problems, err)
	}
}
