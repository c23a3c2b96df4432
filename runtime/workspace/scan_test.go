package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func scanDir(t testing.TB, dir *Dir) Listing {
	t.Helper()
	list, err := dir.Scan(t.Context(), ScanLimits{})
	check(t, err)
	return list
}

func describe(list Listing) []string {
	var lines []string
	for _, e := range list.Entries {
		line := typeName(e.Mode) + " " + e.Path
		if e.Target != "" {
			line += " -> " + e.Target
		}
		lines = append(lines, line)
	}
	return lines
}

func TestScanListsLinksAndSpecials(t *testing.T) {
	outside := newCanary(t)
	dir := newDir(t)
	ws := dir.Path()
	check(t, os.MkdirAll(ws+"/a/b", 0o755))
	writeFile(t, ws+"/a/f", "x")
	writeFile(t, ws+"/a.b", "x")
	check(t, os.Symlink("/etc/passwd", ws+"/result.txt"))
	check(t, os.Symlink(outside.dir, ws+"/d"))
	check(t, os.Symlink("loop", ws+"/loop"))
	check(t, os.Symlink("nowhere", ws+"/dangling"))
	check(t, unix.Mkfifo(ws+"/p", 0o600))
	check(t, unix.Mknod(ws+"/sock", unix.S_IFSOCK|0o600, 0))
	list := scanDir(t, dir)
	want := []string{
		"dir a", "file a.b", "dir a/b", "file a/f", "symlink d -> " + outside.dir,
		"symlink dangling -> nowhere", "symlink loop -> loop", "fifo p",
		"symlink result.txt -> /etc/passwd", "socket sock",
	}
	if diff := cmp.Diff(want, describe(list)); diff != "" {
		t.Error(diff)
	}
	if list.Truncated || list.Notes != nil {
		t.Errorf("truncated %v, notes %q", list.Truncated, list.Notes)
	}
	outside.check(t)
}

func TestScanDeviceIsNotOpened(t *testing.T) {
	dir := newDir(t)
	if err := unix.Mknod(dir.Path()+"/zero", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		t.Skipf("making a device needs root: %v", err)
	}
	if got := describe(scanDir(t, dir)); len(got) != 1 || got[0] != "device zero" {
		t.Errorf("got %q", got)
	}
	if _, err := dir.ReadFile(t.Context(), "zero", 10); !errors.Is(err, ErrNotRegular) {
		t.Errorf("ReadFile = %v", err)
	}
}

func TestScanKeepsOddNames(t *testing.T) {
	dir := newDir(t)
	for _, name := range oddNames {
		writeFile(t, dir.Path()+"/"+name, "1")
	}
	changes := Diff(Listing{}, scanDir(t, dir))
	if len(changes) != len(oddNames) {
		t.Fatalf("got %d changes, want %d", len(changes), len(oddNames))
	}
	seen := map[string]bool{}
	for _, change := range changes {
		seen[change.name()] = true
		if data, err := dir.ReadFile(t.Context(), change.name(), 10); err != nil || string(data) != "1" {
			t.Errorf("ReadFile(%q) = %q, %v", change.name(), data, err)
		}
	}
	for _, name := range oddNames {
		if !seen[name] {
			t.Errorf("%q is missing", name)
		}
	}
}

func TestScanLimits(t *testing.T) {
	dir := newDir(t)
	makeDeep(t, dir.Path(), "d", 3000)
	for i := range 50 {
		writeFile(t, fmt.Sprintf("%s/f%02d", dir.Path(), i), "x")
	}
	for _, test := range []struct {
		name    string
		limits  ScanLimits
		entries int
	}{
		{"default depth", ScanLimits{}, 50 + 256},
		{"depth", ScanLimits{Depth: 30}, 50 + 30},
		{"entries", ScanLimits{Entries: 20}, 20},
		{"bytes", ScanLimits{Bytes: 31}, 10},
		{"none reached", ScanLimits{Depth: 5000}, 50 + 3000 + 1},
	} {
		list, err := dir.Scan(t.Context(), test.limits)
		check(t, err)
		full := test.entries == 50+3000+1
		if test.name != "bytes" && len(list.Entries) != test.entries || list.Truncated == full || (list.Notes == nil) != full {
			t.Errorf("%s: %d entries, truncated %v, notes %q", test.name, len(list.Entries), list.Truncated, list.Notes)
		}
		size := 0
		for _, entry := range list.Entries {
			size += len(entry.Path)
		}
		if test.limits.Bytes > 0 && size > test.limits.Bytes {
			t.Errorf("%s: paths take %d bytes", test.name, size)
		}
	}
}

func TestScanNotesUnreadableDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := newDir(t)
	check(t, os.MkdirAll(dir.Path()+"/closed/in", 0o755))
	check(t, os.Chmod(dir.Path()+"/closed", 0))
	list := scanDir(t, dir)
	check(t, os.Chmod(dir.Path()+"/closed", 0o755))
	if !list.Truncated || len(list.Entries) != 1 || !list.Entries[0].Partial {
		t.Errorf("got %+v", list)
	}
}

func TestScanOfLockedWorkspace(t *testing.T) {
	dir := newDir(t)
	writeFile(t, dir.Path()+"/f", "x")
	for _, mode := range []os.FileMode{0, 0o400, 0o100, 0o200, 0o600} {
		check(t, os.Chmod(dir.Path(), mode))
		if list := scanDir(t, dir); len(list.Entries) != 1 || list.Truncated {
			t.Errorf("mode %v: %q", mode, describe(list))
		}
	}
	check(t, os.Chmod(dir.Path(), 0o755))
}

func TestScanEndsWithContext(t *testing.T) {
	dir := newDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dir.Scan(ctx, ScanLimits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Scan = %v", err)
	}
	if _, err := dir.Usage(ctx, UsageLimits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Usage = %v", err)
	}
	writeFile(t, dir.Path()+"/f", "x")
	if err := dir.Empty(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Empty = %v", err)
	}
	if left := names(t, dir.Path()); len(left) != 1 {
		t.Errorf("left %q", left)
	}
}

func TestScanOfRemovedWorkspace(t *testing.T) {
	dir := newDir(t)
	check(t, os.Remove(dir.Path()))
	if list, err := dir.Scan(t.Context(), ScanLimits{}); err == nil && len(list.Entries) != 0 {
		t.Errorf("got %q", describe(list))
	}
	if err := dir.Recheck(); !errors.Is(err, ErrNotExist) {
		t.Errorf("Recheck = %v", err)
	}
}

// mover moves a directory out of the tree while a walk is deep inside it.
type mover struct {
	t        *testing.T
	from, to string
	seen     []string
	lost     []error
}

func (m *mover) entry(_, _ int, name string, _ int, _ *unix.Statx_t) (int, bool, error) {
	m.seen = append(m.seen, name)
	if name == "bottom" {
		check(m.t, os.Rename(m.from, m.to))
	}
	return 0, true, nil
}

func (m *mover) incomplete(_ int, why error) { m.lost = append(m.lost, why) }

func TestWalkDoesNotClimbOut(t *testing.T) {
	base := t.TempDir()
	check(t, os.MkdirAll(base+"/ws", 0o755))
	check(t, os.MkdirAll(base+"/outside", 0o755))
	writeFile(t, base+"/outside/secret", secret)
	makeDeep(t, base+"/ws", "d", 40)
	check(t, os.Mkdir(base+"/ws/z", 0o755))
	writeFile(t, base+"/ws/z/last", "x")
	dir := openDirAt(t, base+"/ws")
	m := mover{t: t, from: base + "/ws" + strings.Repeat("/d", 35), to: base + "/outside/moved"}
	w := walk{visitor: &m, mask: unix.STATX_BASIC_STATS}
	check(t, dir.hold(func(fd int) error { return w.run(t.Context(), fd) }))
	seen := strings.Join(m.seen, " ")
	if strings.Contains(seen, "secret") || strings.Contains(seen, "moved") {
		t.Errorf("the walk left the tree: %s", seen)
	}
	if !strings.Contains(seen, "last") {
		t.Errorf("the walk did not go on: %s", seen)
	}
	if len(m.lost) == 0 || !errors.Is(m.lost[0], ErrReplaced) {
		t.Errorf("lost %v, want ErrReplaced", m.lost)
	}
}
