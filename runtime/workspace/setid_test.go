package workspace

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func modeOf(t testing.TB, path string) uint32 {
	t.Helper()
	var st unix.Stat_t
	check(t, unix.Lstat(path, &st))
	return st.Mode & 0o7777
}

func setMode(t testing.TB, path string, mode uint32) {
	t.Helper()
	check(t, unix.Chmod(path, mode))
	if got := modeOf(t, path); got != mode {
		t.Skipf("the kernel keeps mode %o from a file here: %o", mode, got)
	}
}

func TestStripSetID(t *testing.T) {
	outside := newCanary(t)
	setMode(t, outside.dir+"/f", 0o4755)
	outside.before = fingerprint(t, outside.dir)
	dir := newDir(t)
	ws := dir.Path()
	check(t, os.Mkdir(ws+"/sub", 0o755))
	for _, name := range []string{"untouched", "touched"} {
		writeFile(t, ws+"/"+name, "x")
		setMode(t, ws+"/"+name, 0o4755)
	}
	before := scanDir(t, dir)
	for name, mode := range map[string]uint32{
		"touched": 0o6755, "s": 0o4755, "sub/g": 0o2711, "closed": 0o4000, "plain": 0o755, "sticky": 0o1644, "\xff": 0o4700,
	} {
		writeFile(t, ws+"/"+name, "x")
		setMode(t, ws+"/"+name, mode)
	}
	check(t, os.Mkdir(ws+"/shared", 0o755))
	setMode(t, ws+"/shared", 0o2755)
	check(t, os.Symlink(outside.dir+"/f", ws+"/link"))
	changes := Diff(before, scanDir(t, dir))
	changes = append(changes, Change{Path: "link", Kind: Created, Type: "file"}) // as if swapped after the scan
	n, err := dir.StripSetID(t.Context(), changes)
	if n != 5 || err != nil {
		t.Errorf("StripSetID = %d, %v", n, err)
	}
	for name, want := range map[string]uint32{
		"untouched": 0o4755, "touched": 0o755, "s": 0o755, "sub/g": 0o711, "closed": 0, "plain": 0o755,
		"sticky": 0o1644, "\xff": 0o700, "shared": 0o2755,
	} {
		if got := modeOf(t, ws+"/"+name); got != want {
			t.Errorf("%q has mode %o, want %o", name, got, want)
		}
	}
	outside.check(t)
}

func TestStripSetIDReportsAndGoesOn(t *testing.T) {
	dir := newDir(t)
	outside := newCanary(t)
	check(t, os.Symlink(outside.dir, dir.Path()+"/l"))
	writeFile(t, dir.Path()+"/s", "x")
	setMode(t, dir.Path()+"/s", 0o4755)
	n, err := dir.StripSetID(t.Context(), []Change{
		{Path: "../x", Type: "file"}, {Path: "l/f", Type: "file"}, {Path: "gone", Type: "file"}, {Path: "s", Type: "file"},
	})
	if n != 1 || !errors.Is(err, ErrEscape) || !errors.Is(err, ErrSymlink) {
		t.Errorf("StripSetID = %d, %v", n, err)
	}
	outside.check(t)
}

func TestStripSetIDSince(t *testing.T) {
	dir := newDir(t)
	ws := dir.Path()
	writeFile(t, ws+"/old", "x")
	setMode(t, ws+"/old", 0o4755)
	var st unix.Stat_t
	check(t, unix.Lstat(ws+"/old", &st))
	makeDeep(t, ws, "d", 300)
	list := scanDir(t, dir)
	if !list.Truncated {
		t.Fatal("the tree is not too deep")
	}
	path := ws
	for range 300 {
		path += "/d"
	}
	setMode(t, path+"/bottom", 0o6755)
	since := time.Unix(st.Ctim.Unix())
	if n, err := dir.StripSetIDSince(t.Context(), since.Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("nothing is that new: %d, %v", n, err)
	}
	if n, err := dir.StripSetIDSince(t.Context(), since); n != 2 || err != nil {
		t.Errorf("StripSetIDSince = %d, %v", n, err)
	}
	if got := modeOf(t, path+"/bottom"); got != 0o755 {
		t.Errorf("mode %o at the bottom", got)
	}
}

func TestStripCapabilities(t *testing.T) {
	dir := newDir(t)
	writeFile(t, dir.Path()+"/f", "x")
	// Version 2, effective, CAP_NET_RAW permitted.
	value := make([]byte, 20)
	value[0], value[3], value[5] = 1, 2, 1<<5
	if err := unix.Lsetxattr(dir.Path()+"/f", capabilities, value, 0); err != nil {
		t.Skipf("setting file capabilities needs root: %v", err)
	}
	n, err := dir.StripSetID(t.Context(), Diff(Listing{}, scanDir(t, dir)))
	if n != 1 || err != nil {
		t.Errorf("StripSetID = %d, %v", n, err)
	}
	if _, err := unix.Lgetxattr(dir.Path()+"/f", capabilities, nil); err != unix.ENODATA {
		t.Errorf("capabilities: %v", err)
	}
}

// TestChmodByProc: the way of kernels before 6.6, which this one may not need.
func TestChmodByProc(t *testing.T) {
	dir := t.TempDir()
	for _, mode := range []uint32{0, 0o644} {
		path := dir + "/f"
		writeFile(t, path, "x")
		setMode(t, path, mode)
		fd, err := openAt(unix.AT_FDCWD, "/", unix.O_PATH, 0, 0)
		if err == nil {
			unix.Close(fd)
			t.Fatal("an absolute path was opened")
		}
		fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		check(t, err)
		check(t, chmodByProc(fd, 0o751))
		unix.Close(fd)
		if got := modeOf(t, path); got != 0o751 {
			t.Errorf("mode %o", got)
		}
		check(t, os.Remove(path))
	}
}
