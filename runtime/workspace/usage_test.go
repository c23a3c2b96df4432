package workspace

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func usage(t testing.TB, dir *Dir, limits UsageLimits) Usage {
	t.Helper()
	got, err := dir.Usage(t.Context(), limits)
	check(t, err)
	return got
}

func TestUsageCountsHardLinksOnce(t *testing.T) {
	dir := newDir(t)
	writeFile(t, dir.Path()+"/a", string(make([]byte, 1<<20)))
	one := usage(t, dir, UsageLimits{})
	if one.Bytes < 1<<20 || one.Entries != 1 {
		t.Errorf("one file: %+v", one)
	}
	check(t, os.Link(dir.Path()+"/a", dir.Path()+"/b"))
	two := usage(t, dir, UsageLimits{})
	if two.Bytes != one.Bytes || two.Entries != 2 || two.Truncated {
		t.Errorf("two names: %+v, one: %+v", two, one)
	}
	list := scanDir(t, dir)
	if list.Entries[0].Links != 2 {
		t.Errorf("%d links", list.Entries[0].Links)
	}
}

func TestUsageCountsBlocksNotSizes(t *testing.T) {
	dir := newDir(t)
	file, err := os.Create(dir.Path() + "/sparse")
	check(t, err)
	check(t, file.Truncate(1<<40))
	check(t, file.Close())
	if got := usage(t, dir, UsageLimits{}); got.Bytes > 1<<20 {
		t.Errorf("a sparse file takes %d bytes", got.Bytes)
	}
}

func TestUsageStopsAtCeilings(t *testing.T) {
	dir := newDir(t)
	for i := range 100 {
		writeFile(t, fmt.Sprintf("%s/f%d", dir.Path(), i), string(make([]byte, 10_000)))
	}
	all := usage(t, dir, UsageLimits{})
	if all.Truncated || all.Entries != 100 {
		t.Errorf("all: %+v", all)
	}
	for _, limits := range []UsageLimits{{Entries: 10}, {Bytes: 100_000}} {
		got := usage(t, dir, limits)
		if !got.Truncated || got.Entries > 11 || got.Entries == 0 {
			t.Errorf("%+v: %+v", limits, got)
		}
	}
	exact := usage(t, dir, UsageLimits{Entries: 100, Bytes: all.Bytes})
	if exact != all {
		t.Errorf("exactly at the ceilings: %+v", exact)
	}
}

func TestUsageGoesToTheBottom(t *testing.T) {
	dir := newDir(t)
	makeDeep(t, dir.Path(), "d", 3000)
	makeDeep(t, dir.Path(), "e", 100)
	if got := usage(t, dir, UsageLimits{}); got.Truncated || got.Entries != 3102 {
		t.Errorf("got %+v", got)
	}
}

func TestUsageUnlock(t *testing.T) {
	dir := newDir(t)
	check(t, os.MkdirAll(dir.Path()+"/a/b", 0o755))
	writeFile(t, dir.Path()+"/a/b/hidden", string(make([]byte, 1<<20)))
	check(t, os.Chmod(dir.Path()+"/a/b", 0))
	check(t, os.Chmod(dir.Path()+"/a", 0o100))
	if os.Geteuid() != 0 {
		if got := usage(t, dir, UsageLimits{}); !got.Truncated {
			t.Errorf("locked: %+v", got)
		}
	}
	got := usage(t, dir, UsageLimits{Unlock: true})
	if got.Truncated || got.Entries != 3 || got.Bytes < 1<<20 {
		t.Errorf("unlocked: %+v", got)
	}
	// What was locked is locked again.
	for _, locked := range []struct {
		path string
		mode os.FileMode
	}{{"/a", 0o100}, {"/a/b", 0}} {
		info, err := os.Stat(dir.Path() + locked.path)
		check(t, err)
		if info.Mode().Perm() != locked.mode {
			t.Errorf("%s has mode %o, had %o", locked.path, info.Mode().Perm(), locked.mode)
		}
		check(t, os.Chmod(dir.Path()+locked.path, 0o700))
	}
}

func TestWalkClosesWhatItOpens(t *testing.T) {
	dir := newDir(t)
	makeDeep(t, dir.Path(), "d", 100)
	before := len(names(t, "/proc/self/fd"))
	scanDir(t, dir)
	usage(t, dir, UsageLimits{})
	usage(t, dir, UsageLimits{Entries: 50})
	_, _ = dir.ReadFile(t.Context(), "d/d/d", 0)
	_ = dir.WriteFile(t.Context(), "d/d/d", nil, 0o600)
	_, err := Open(dir.Path(), Rules{})
	if err == nil {
		t.Error("Open without roots succeeded")
	}
	check(t, dir.Empty(t.Context()))
	if after := len(names(t, "/proc/self/fd")); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func TestMountsAreNotEntered(t *testing.T) {
	dir := newDir(t)
	outside := newCanary(t)
	check(t, os.Mkdir(dir.Path()+"/mnt", 0o755))
	if err := unix.Mount(outside.dir, dir.Path()+"/mnt", "", unix.MS_BIND, ""); err != nil {
		t.Skipf("mounting needs root: %v", err)
	}
	defer func() { check(t, unix.Unmount(dir.Path()+"/mnt", unix.MNT_DETACH)) }()
	if list := scanDir(t, dir); len(list.Entries) != 1 || !list.Truncated {
		t.Errorf("scan: %q", describe(list))
	}
	if got := usage(t, dir, UsageLimits{Unlock: true}); got.Entries != 1 || !got.Truncated {
		t.Errorf("usage: %+v", got)
	}
	if err := dir.Empty(t.Context()); err == nil {
		t.Error("Empty removed a mount point")
	}
	outside.check(t)
}
