package workspace

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// racer exchanges names in a workspace until stop is called: a directory with a
// link out of it, a file with a FIFO, a file with a directory.
type racer struct {
	stopped atomic.Bool
	group   sync.WaitGroup
	swaps   atomic.Int64
}

func startRacer(t testing.TB, ws string) *racer {
	t.Helper()
	fd, err := unix.Open(ws, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	r := &racer{}
	r.group.Go(func() {
		defer unix.Close(fd)
		for !r.stopped.Load() {
			for _, pair := range [][2]string{{"d", "s"}, {"file", "fifo"}, {"d", "s"}, {"file", "e"}} {
				if unix.Renameat2(fd, pair[0], fd, pair[1], unix.RENAME_EXCHANGE) == nil {
					r.swaps.Add(1)
				}
			}
		}
	})
	return r
}

func (r *racer) stop(t testing.TB) {
	t.Helper()
	r.stopped.Store(true)
	r.group.Wait()
	if r.swaps.Load() == 0 {
		t.Error("the racer did nothing")
	}
}

func makeRaceTree(t testing.TB, ws, outside string) {
	t.Helper()
	check(t, os.MkdirAll(ws+"/d/sub/deeper", 0o755))
	writeFile(t, ws+"/d/f", "inside")
	writeFile(t, ws+"/d/sub/deeper/f", "inside")
	check(t, os.Symlink(outside, ws+"/s"))
	writeFile(t, ws+"/file", "inside")
	check(t, unix.Mkfifo(ws+"/fifo", 0o600))
	check(t, os.Mkdir(ws+"/e", 0o755))
}

const raceTime = 1500 * time.Millisecond

// tally counts how calls ended in a race: a race that only ever ends one way
// shows nothing.
type tally struct{ fine, refused int }

func (c *tally) add(errs ...error) {
	for _, err := range errs {
		if err == nil {
			c.fine++
		} else {
			c.refused++
		}
	}
}

// TestRace swaps directories and links while each operation runs. Nothing may be
// read, counted, written, chmoded or removed outside.
func TestRace(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, operate := range map[string]func(*testing.T, *Dir, *tally){
		"read": raceRead, "write": raceWrite, "remove": raceRemove,
		"scan": raceScan, "usage": raceUsage, "strip": raceStrip,
	} {
		t.Run(name, func(t *testing.T) {
			outside := newCanary(t)
			writeFile(t, outside.dir+"/big", strings.Repeat("x", 1<<20))
			setMode(t, outside.dir+"/f", 0o4755)
			outside.before = fingerprint(t, outside.dir)
			dir := newDir(t)
			makeRaceTree(t, dir.Path(), outside.dir)
			r := startRacer(t, dir.Path())
			var calls tally
			for end := time.Now().Add(raceTime); time.Now().Before(end); {
				operate(t, dir, &calls)
			}
			r.stop(t)
			t.Logf("%d swaps, %d calls fine, %d refused", r.swaps.Load(), calls.fine, calls.refused)
			if calls.fine == 0 {
				t.Error("no call ever succeeded")
			}
			outside.check(t)
		})
	}
}

func raceRead(t *testing.T, dir *Dir, calls *tally) {
	t.Helper()
	for _, rel := range []string{"d/f", "s/f", "d/sub/deeper/f", "s/secret", "file", "fifo", "e"} {
		data, err := dir.ReadFile(t.Context(), rel, 0)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s: read the secret", rel)
		}
		calls.add(err)
	}
}

func raceWrite(t *testing.T, dir *Dir, calls *tally) {
	t.Helper()
	calls.add(
		dir.WriteFile(t.Context(), "d/f", []byte("inside"), 0o600),
		dir.WriteFile(t.Context(), "s/sub/deeper/f", []byte("inside"), 0o600))
}

func raceRemove(t *testing.T, dir *Dir, calls *tally) {
	t.Helper()
	calls.add(dir.Remove("d/f"), dir.Remove("s/f"), dir.Remove("s/sub/deeper/f"),
		dir.WriteFile(t.Context(), "d/f", []byte("inside"), 0o600))
}

func raceScan(t *testing.T, dir *Dir, calls *tally) {
	t.Helper()
	list, err := dir.Scan(t.Context(), ScanLimits{})
	calls.add(err)
	for _, entry := range list.Entries {
		if strings.HasSuffix(entry.Path, "secret") {
			t.Errorf("listed %s", entry.Path)
		}
	}
}

// raceUsage may count what was swapped twice, but never the megabyte outside.
func raceUsage(t *testing.T, dir *Dir, calls *tally) {
	t.Helper()
	got, err := dir.Usage(t.Context(), UsageLimits{Unlock: true})
	calls.add(err)
	if got.Bytes >= 1<<20 {
		t.Errorf("counted %d bytes", got.Bytes)
	}
}

func raceStrip(t *testing.T, dir *Dir, calls *tally) {
	t.Helper()
	n, err := dir.StripSetID(t.Context(), []Change{{Path: "d/f", Type: "file"}, {Path: "s/f", Type: "file"}})
	since, also := dir.StripSetIDSince(t.Context(), time.Time{})
	if n != 0 || since != 0 {
		t.Errorf("stripped %d and %d", n, since)
	}
	calls.add(err, also)
}

// TestRaceRemoval removes trees that are being swapped and refilled.
func TestRaceRemoval(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	outside := newCanary(t)
	base := t.TempDir()
	parent, err := os.Open(base)
	check(t, err)
	defer parent.Close()
	rounds := 0
	for end := time.Now().Add(raceTime); time.Now().Before(end); rounds++ {
		check(t, os.Mkdir(base+"/ws", 0o755))
		makeRaceTree(t, base+"/ws", outside.dir)
		dir := openDirAt(t, base+"/ws")
		r := startRacer(t, base+"/ws")
		for r.swaps.Load() == 0 {
		}
		if rounds%2 == 0 {
			check(t, dir.Empty(t.Context()))
		}
		check(t, RemoveAll(t.Context(), parent, "ws"))
		r.stop(t)
		check(t, dir.Close())
	}
	t.Logf("%d rounds", rounds)
	outside.check(t)
}

// TestRemovalEndsAgainstARefiller: somebody who creates files all the time may
// win, but the removal ends, and says so.
func TestRemovalEndsAgainstARefiller(t *testing.T) {
	base := t.TempDir()
	check(t, os.MkdirAll(base+"/ws/sub", 0o755))
	parent, err := os.Open(base)
	check(t, err)
	defer parent.Close()
	var stop atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !stop.Load() {
			_ = os.MkdirAll(base+"/ws/sub/deep", 0o755)
			if file, err := os.Create(base + "/ws/sub/deep/f"); err == nil {
				file.Close()
			}
		}
	})
	for range 20 {
		for !exists(base + "/ws/sub/deep/f") {
		}
		err := RemoveAll(t.Context(), parent, "ws")
		if err != nil && !errors.Is(err, ErrLeftover) {
			t.Errorf("RemoveAll = %v", err)
		}
	}
	stop.Store(true)
	group.Wait()
	check(t, RemoveAll(t.Context(), parent, "ws"))
	if left := names(t, base); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestRaceIsReal is the negative control: reading by path, after a look at it,
// gives the secret away in the same race.
func TestRaceIsReal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	outside := newCanary(t)
	ws := t.TempDir()
	makeRaceTree(t, ws, outside.dir)
	r := startRacer(t, ws)
	defer r.stop(t)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		info, err := os.Lstat(ws + "/d")
		if err != nil || !info.IsDir() {
			continue
		}
		if data, err := os.ReadFile(ws + "/d/f"); err == nil && string(data) == secret {
			return
		}
	}
	t.Error("check, then open, never lost the race: TestRace proves nothing")
}
