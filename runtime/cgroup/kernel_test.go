package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of this file talk to the kernel that runs them. Their programs are
// this test binary itself, told what to be by an environment variable.

const roleVariable = "GAOL_CGROUP_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role string) {
	switch role {
	case "grow":
		for {
			block := make([]byte, 8<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			hoard = append(hoard, block)
		}
	case "spin":
		for range 3 {
			go func() {
				for {
				}
			}()
		}
		select {}
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
		select {}
	}
}

var hoard [][]byte

// place finds the hierarchy of this host or skips.
func place(t *testing.T) *Hierarchy {
	t.Helper()
	h, err := Find(Config{})
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
		for _, dir := range g.Paths() {
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", dir, err)
			}
		}
		if err := h.Sweep(); err != nil {
			t.Error(err)
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.Place(cmd.SysProcAttr)
	if err := g.Spawn(cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(stdout)
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
	actor(t, g, "spin")
	cpu := func() time.Duration {
		u, err := g.Usage()
		if err != nil {
			t.Fatal(err)
		}
		return u.CPU
	}
	for cpu() == 0 {
		time.Sleep(time.Millisecond)
	}
	// A measurement, not a synchronisation: two seconds are what is measured.
	used, begin := cpu(), time.Now()
	time.Sleep(2 * time.Second)
	share := float64(cpu()-used) / float64(time.Since(begin))
	if share < 0.5*0.85 || share > 0.5*1.15 {
		t.Errorf("share of CPU %.3f, want 0.5", share)
	}
	u, err := g.Usage()
	if err != nil || u.ThrottledPeriods == 0 || u.Throttled == 0 {
		t.Errorf("usage %+v, %v", u, err)
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
	for _, dir := range g.Paths() {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil || len(text) != 0 {
			t.Errorf("after Kill %s has %q, %v", dir, text, err)
		}
	}
}

func TestBornInside(t *testing.T) {
	h := place(t)
	g := group(t, h, roomy)
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
