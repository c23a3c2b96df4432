package workspace

import (
	"fmt"
	"os"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// slow is far above what is expected, which is logged: a loaded machine is not
// an error, something quadratic is.
const slow = 60 * time.Second

func makeWide(t testing.TB, path string, count int) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	for i := range count {
		file, err := unix.Openat(fd, fmt.Sprintf("file-%06d", i), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		check(t, err)
		unix.Close(file)
	}
}

func timed(t testing.TB, what string, do func()) {
	t.Helper()
	begin := time.Now()
	do()
	took := time.Since(begin)
	t.Logf("%s: %v", what, took)
	if took > slow {
		t.Errorf("%s took %v", what, took)
	}
}

func TestHundredThousandFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := newDir(t)
	makeWide(t, dir.Path(), 100_000)
	var list Listing
	timed(t, "scan 100,000", func() { list = scanDir(t, dir) })
	if len(list.Entries) != 100_000 || list.Truncated {
		t.Errorf("%d entries, truncated %v", len(list.Entries), list.Truncated)
	}
	timed(t, "measure 100,000", func() { usage(t, dir, UsageLimits{}) })
	var changes []Change
	timed(t, "compare 100,000", func() { changes = Diff(Listing{}, list) })
	timed(t, "strip 100,000", func() {
		if n, err := dir.StripSetID(t.Context(), changes); n != 0 || err != nil {
			t.Errorf("StripSetID = %d, %v", n, err)
		}
	})
	peak := heapPeak(func() {
		timed(t, "remove 100,000", func() { check(t, dir.Empty(t.Context())) })
	})
	t.Logf("heap grew by %d KB", peak>>10)
	if peak > 32<<20 {
		t.Errorf("heap grew by %d MB", peak>>20)
	}
	if left := names(t, dir.Path()); len(left) != 0 {
		t.Errorf("left %d", len(left))
	}
}

func TestDeepRemovalIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := newDir(t)
	makeDeep(t, dir.Path(), "d", 20_000)
	makeDeep(t, dir.Path(), "e", 1000)
	restore := limitDescriptors(t, 32)
	defer restore()
	peak := heapPeak(func() {
		timed(t, "remove 20,000 levels", func() { check(t, dir.Empty(t.Context())) })
	})
	restore()
	t.Logf("heap grew by %d KB", peak>>10)
	if peak > 32<<20 {
		t.Errorf("heap grew by %d MB", peak>>20)
	}
	if left := names(t, dir.Path()); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func TestDeepMeasureIsBounded(t *testing.T) {
	dir := newDir(t)
	makeDeep(t, dir.Path(), "d", 500)
	restore := limitDescriptors(t, 32)
	defer restore()
	got := usage(t, dir, UsageLimits{})
	list := scanDir(t, dir)
	restore()
	if got.Entries != 501 || got.Truncated || len(list.Entries) != 256 {
		t.Errorf("usage %+v, listed %d", got, len(list.Entries))
	}
}

// limitDescriptors leaves room for spare more descriptors: one too many is
// EMFILE, which no sampling could miss.
func limitDescriptors(t testing.TB, spare uint64) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: freeAfter(t, spare), Max: old.Max}))
	return sync.OnceFunc(func() { check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) })
}

// freeAfter returns the number below which exactly spare descriptors are free.
func freeAfter(t testing.TB, spare uint64) uint64 {
	t.Helper()
	used := map[string]bool{}
	for _, name := range names(t, "/proc/self/fd") {
		if _, err := os.Readlink("/proc/self/fd/" + name); err == nil {
			used[name] = true
		}
	}
	limit := uint64(0)
	for free := uint64(0); free < spare; limit++ {
		if !used[fmt.Sprint(limit)] {
			free++
		}
	}
	return limit
}

// heapPeak returns by how much the live heap grew at most while do ran.
func heapPeak(do func()) uint64 {
	goruntime.GC()
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	before := stats.HeapAlloc
	var peak atomic.Uint64
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var stats goruntime.MemStats
			goruntime.ReadMemStats(&stats)
			peak.Store(max(peak.Load(), stats.HeapAlloc))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	do()
	close(done)
	group.Wait()
	return max(peak.Load(), before) - before
}
