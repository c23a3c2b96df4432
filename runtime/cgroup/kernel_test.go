package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests of this file talk to the kernel that runs them. Their programs are
// this test binary itself, told what to be by an environment variable.

const roleVariable = "GAOL_CGROUP_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		goruntime.LockOSThread() // TestMain has the main thread
		play(role)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role string) {
	switch role {
	case "grow":
		for range 40 { // should no limit hold, the host survives the proof
			block := make([]byte, 8<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			hoard = append(hoard, block)
		}
	case "spin":
		var spinners sync.WaitGroup
		for range 3 {
			spinners.Go(func() {
				for spent() < spinTime {
				}
			})
		}
		spinners.Wait()
	case "groups": // print the groups it was born in, then wait for the end of stdin
		text, _ := os.ReadFile("/proc/self/cgroup")
		fmt.Println(strings.Join(strings.Fields(string(text)), " "))
		_, _ = os.Stdin.Read(make([]byte, 1))
	case "fork": // start children until that fails, print how many there are
		n := 0
		for ; n < 500; n++ {
			if exec.Command("/bin/sleep", "60").Start() != nil {
				break
			}
		}
		fmt.Println(n)
		_, _ = os.Stdin.Read(make([]byte, 1))
	case "main":
		if err := playMain(); err != nil {
			fmt.Println(err)
		}
	case "ordinary":
		_, err := Find(context.Background(), Config{})
		var no *Unavailable
		if errors.As(err, &no) {
			fmt.Printf("unavailable: %s; %s\n", no.Reason, no.Fix)
			return
		}
		fmt.Println("found:", err)
	}
}

var hoard [][]byte

// spinTime is how much CPU time the program that spins uses up before it ends.
const spinTime = time.Second

// spent is the CPU time of this process so far.
func spent() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return spinTime
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// place finds the hierarchy of this host or skips.
func place(t *testing.T) *Hierarchy {
	t.Helper()
	h, err := Find(t.Context(), Config{SessionBus: os.Getenv("DBUS_SESSION_BUS_ADDRESS")})
	var no *Unavailable
	if errors.As(err, &no) {
		t.Skipf("no groups can be made here: %s", no.Reason)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// group makes one that is killed and removed with the test, and checks that
// nothing of it remains.
func group(t *testing.T, h *Hierarchy, l Limits) *Group {
	t.Helper()
	g, err := h.New(fmt.Sprintf("gaol-test-%d-%d", os.Getpid(), time.Now().UnixNano()), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(g.Kill(ctx), g.Remove(ctx), g.Remove(ctx)); err != nil {
			t.Error(err)
		}
		for _, dir := range g.paths {
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", dir, err)
			}
		}
	})
	return g
}

// actor starts this binary in a role inside g and returns it with its first
// line of output still to be read.
func actor(t *testing.T, g *Group, role string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVariable + "=" + role, "GOMAXPROCS=2"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(g, cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(stdout)
}

// start gives birth to cmd inside g.
func start(g *Group, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() {
		goruntime.LockOSThread()
		err := g.JoinThread()
		if errors.Is(err, ErrMainThread) {
			// While it is held here, the next goroutine gets another one.
			done <- start(g, cmd)
			goruntime.UnlockOSThread()
			return
		}
		if err == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
			g.Place(cmd.SysProcAttr)
			err = cmd.Start()
		}
		done <- err
	}()
	return <-done
}

var roomy = Limits{Memory: 512 << 20, CPUs: 2, Tasks: 1000}

func TestGrowthIsKilledAndCounted(t *testing.T) {
	h := place(t)
	l := roomy
	l.Memory = 64 << 20
	g := group(t, h, l)
	before, err := g.Usage()
	if err != nil || before.OOMKills != 0 {
		t.Fatalf("fresh group: %+v, %v", before, err)
	}
	cmd, _ := actor(t, g, "grow")
	err = cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("program that grows: %v", err)
	}
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if u.OOMKills == 0 || u.MemoryPeak > l.Memory+1<<20 || u.MemoryPeak < l.Memory/2 || u.CPU == 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestQuotaHolds(t *testing.T) {
	h := place(t)
	l := roomy
	l.CPUs = 0.5
	g := group(t, h, l)
	begin := time.Now()
	cmd, _ := actor(t, g, "spin")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	wall := time.Since(begin)
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	// A busy host can only make the share smaller.
	if share := float64(u.CPU) / float64(wall); u.CPU < spinTime || share > 0.5*1.15 || share < 0.5*0.5 {
		t.Errorf("%v of CPU in %v, a share of %.3f, want 0.5", u.CPU, wall, share)
	}
	if u.ThrottledPeriods == 0 || u.Throttled == 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestWallOfTasks(t *testing.T) {
	h := place(t)
	l := roomy
	l.Tasks = 40
	g := group(t, h, l)
	_, out := actor(t, g, "fork")
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || n == 0 || n >= l.Tasks {
		t.Errorf("children %q, %v", line, err)
	}
	u, err := g.Usage()
	if err != nil || u.TaskRefusals == 0 || u.TasksPeak > l.Tasks {
		t.Errorf("usage %+v, %v", u, err)
	}
	if err := g.Kill(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.paths {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil || len(text) != 0 {
			t.Errorf("after Kill %s has %q, %v", dir, text, err)
		}
	}
}

// A process is in all trees before its first instruction, and one that was
// started without Place and JoinThread is in none: they are what puts it there.
func TestBornInside(t *testing.T) {
	h := place(t)
	g := group(t, h, roomy)
	outsider := exec.Command("/bin/cat", "/proc/self/cgroup")
	if text, err := outsider.Output(); err != nil || strings.Contains(string(text), g.name) {
		t.Errorf("outsider is in %s, %v", text, err)
	}
	_, out := actor(t, g, "groups")
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	in, err := parseMembership(strings.ReplaceAll(line, " ", "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range h.branches {
		if got, _ := in.of(b.mount); !strings.HasSuffix(got, "/gaol/"+g.name) {
			t.Errorf("%v: born in %s", b.controllers, got)
		}
	}
}

// Many owners share one parent group; each removes it when it looks empty.
func TestCrowdSharesParent(t *testing.T) {
	h := place(t)
	var crowd sync.WaitGroup
	for i := range 8 {
		crowd.Go(func() {
			for j := range 25 {
				g, err := h.New(fmt.Sprintf("gaol-crowd-%d-%d-%d", os.Getpid(), i, j), roomy)
				if err != nil {
					t.Error(err)
					return
				}
				if err := g.Remove(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	crowd.Wait()
	for _, b := range h.branches {
		if left, _ := filepath.Glob(filepath.Join(b.parent(), "gaol-crowd-*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// A crash leaves processes and groups; their recorded paths are enough.
func TestReapEndsTheDead(t *testing.T) {
	h := place(t)
	g := group(t, h, roomy)
	cmd, out := actor(t, g, "groups")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := Reap(context.Background(), g.paths); err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.paths {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
	_ = cmd.Wait()
	if status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("member ended as %v", cmd.ProcessState)
	}
}

func TestRemoveOutlastsMembers(t *testing.T) {
	h := place(t)
	g := group(t, h, roomy)
	cmd, out := actor(t, g, "groups")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := g.Remove(ctx); !errors.Is(err, ErrBusy) {
		t.Errorf("Remove of a group in use: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Remove(context.Background()) }()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The whole process would be charged to the group, and die with it.
func TestMainThreadStaysOut(t *testing.T) {
	h := place(t)
	if h.Version() == 2 {
		t.Skip("version 2 places processes without threads")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVariable + "=main"}
	out, err := cmd.Output()
	if err != nil || string(out) != "stayed out, started inside\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// playMain tries from the main thread.
func playMain() error {
	h, err := Find(context.Background(), Config{})
	if err != nil {
		return err
	}
	g, err := h.New(fmt.Sprintf("gaol-main-%d", os.Getpid()), roomy)
	if err != nil {
		return err
	}
	if unix.Gettid() != os.Getpid() {
		return errors.New("not on the main thread")
	}
	if err := g.JoinThread(); !errors.Is(err, ErrMainThread) {
		return fmt.Errorf("JoinThread: %w", err)
	}
	fmt.Print("stayed out, ")
	cmd := exec.Command("/bin/cat", "/proc/self/cgroup")
	var out strings.Builder
	cmd.Stdout = &out
	if err := errors.Join(start(g, cmd), cmd.Wait(), g.Kill(context.Background()), g.Remove(context.Background())); err != nil {
		return err
	}
	if strings.Count(out.String(), g.name) != len(h.branches) {
		return fmt.Errorf("started in %s", out.String())
	}
	fmt.Println("started inside")
	return nil
}

// An ordinary user either gets a place that works or is told why not.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVariable + "=ordinary"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64997, Gid: 64997}}
	out, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(out), "unavailable: ") {
		t.Errorf("%q, %v", out, err)
	}
	t.Logf("%s", out)
}
