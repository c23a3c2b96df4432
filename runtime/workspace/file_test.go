package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// linksOut fills a workspace with every way out that a program can leave there.
func linksOut(t testing.TB, ws, outside string) {
	t.Helper()
	check(t, os.Mkdir(ws+"/real", 0o755))
	writeFile(t, ws+"/real/f", "inside")
	for name, target := range map[string]string{
		"a": "/etc/passwd", "b": "../../../../etc/passwd", "c": "/proc/self/environ", "d": "/proc/self/root/etc",
		"loop": "loop", "chain": "a", "dir": "/", "out": outside, "file": outside + "/secret",
		"up": "..", "real/up": "../..", "here": ".", "dangling": "nowhere", "zero": "/dev/zero", "tty": "/dev/tty",
		"self": "/proc/self/cwd", "fd": "/proc/self/fd",
	} {
		check(t, os.Symlink(target, ws+"/"+name))
	}
}

var escapes = []struct {
	rel  string
	want error
}{
	{"a", ErrSymlink}, {"b", ErrSymlink}, {"c", ErrSymlink}, {"d/passwd", ErrSymlink}, {"loop", ErrSymlink},
	{"loop/x", ErrSymlink}, {"chain", ErrSymlink}, {"dir/etc/passwd", ErrSymlink}, {"./a", ErrSymlink},
	{"a/", ErrSymlink}, {"dir/", ErrSymlink}, {"out/secret", ErrSymlink}, {"out/new", ErrSymlink}, {"file", ErrSymlink},
	{"up/x", ErrSymlink}, {"real/up/x", ErrSymlink}, {"here/real/f", ErrSymlink}, {"dangling", ErrSymlink},
	{"zero", ErrSymlink}, {"self/x", ErrSymlink}, {"fd/0", ErrSymlink},
	{"..", ErrEscape}, {"../x", ErrEscape}, {"real/../real/f", ErrEscape}, {"real/../../x", ErrEscape},
	{"/etc/passwd", ErrEscape}, {"/", ErrEscape}, {"//etc/passwd", ErrEscape},
	{"", ErrBadName}, {".", ErrBadName}, {"./", ErrBadName}, {"a\x00b", ErrBadName},
	{"real/f/x", ErrNotDirectory}, {strings.Repeat("n", 256), unix.ENAMETOOLONG},
}

func TestReadWriteNeverFollow(t *testing.T) {
	outside := newCanary(t)
	passwd, err := os.ReadFile("/etc/passwd")
	check(t, err)
	dir := newDir(t)
	linksOut(t, dir.Path(), outside.dir)
	for _, test := range escapes {
		data, err := dir.ReadFile(t.Context(), test.rel, 0)
		if !errors.Is(err, test.want) || data != nil {
			t.Errorf("ReadFile(%q) = %d bytes, %v, want %v", test.rel, len(data), err, test.want)
		}
		if err := dir.WriteFile(t.Context(), test.rel, []byte("x"), 0o644); !errors.Is(err, test.want) {
			t.Errorf("WriteFile(%q) = %v, want %v", test.rel, err, test.want)
		}
	}
	if now, err := os.ReadFile("/etc/passwd"); err != nil || !bytes.Equal(now, passwd) {
		t.Error("/etc/passwd changed")
	}
	outside.check(t)
}

func TestRemoveTakesTheLink(t *testing.T) {
	outside := newCanary(t)
	dir := newDir(t)
	linksOut(t, dir.Path(), outside.dir)
	check(t, unix.Mkfifo(dir.Path()+"/fifo", 0o600))
	check(t, os.Mkdir(dir.Path()+"/empty", 0o755))
	for _, rel := range []string{"a", "./b", "c", "d/", "loop", "chain", "dir/", "out", "file", "fifo", "empty", "real/up"} {
		check(t, dir.Remove(rel))
		if _, err := os.Lstat(dir.Path() + "/" + strings.TrimSuffix(rel, "/")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", rel, err)
		}
	}
	for rel, want := range map[string]error{
		"here/real/f": ErrSymlink, "fd/0": ErrSymlink, "absent": ErrNotExist, "real": ErrLeftover, "..": ErrEscape, ".": ErrBadName,
	} {
		if err := dir.Remove(rel); !errors.Is(err, want) {
			t.Errorf("Remove(%s) = %v, want %v", rel, err, want)
		}
	}
	outside.check(t)
}

func TestSpecialFilesAnswerAtOnce(t *testing.T) {
	dir := newDir(t)
	check(t, unix.Mkfifo(dir.Path()+"/fifo", 0o600))
	check(t, unix.Mknod(dir.Path()+"/sock", unix.S_IFSOCK|0o600, 0))
	check(t, os.Mkdir(dir.Path()+"/dir", 0o755))
	for _, rel := range []string{"fifo", "sock", "dir"} {
		if _, err := dir.ReadFile(t.Context(), rel, 0); !errors.Is(err, ErrNotRegular) {
			t.Errorf("ReadFile(%s) = %v", rel, err)
		}
		if err := dir.WriteFile(t.Context(), rel, nil, 0o644); !errors.Is(err, ErrNotRegular) {
			t.Errorf("WriteFile(%s) = %v", rel, err)
		}
	}
}

func TestReadFileMaximum(t *testing.T) {
	dir := newDir(t)
	writeFile(t, dir.Path()+"/f", "0123456789")
	check(t, os.Truncate(dir.Path()+"/f", 10))
	sparse, err := os.Create(dir.Path() + "/sparse")
	check(t, err)
	check(t, sparse.Truncate(1<<40))
	check(t, sparse.Close())
	for _, test := range []struct {
		rel  string
		max  int64
		size int
		want error
	}{
		{"f", 0, 10, nil}, {"f", 10, 10, nil}, {"f", 11, 10, nil}, {"f", 9, 9, ErrTooLarge}, {"f", 1, 1, ErrTooLarge},
		{"sparse", 1 << 20, 1 << 20, ErrTooLarge}, {"sparse", 0, defaultRead, ErrTooLarge}, {"sparse", -1, defaultRead, ErrTooLarge},
	} {
		data, err := dir.ReadFile(t.Context(), test.rel, test.max)
		if len(data) != test.size || !errors.Is(err, test.want) {
			t.Errorf("ReadFile(%s, %d) = %d bytes, %v", test.rel, test.max, len(data), err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := newDir(t)
	check(t, os.Mkdir(dir.Path()+"/sub", 0o755))
	writeFile(t, dir.Path()+"/linked", "old")
	check(t, os.Link(dir.Path()+"/linked", dir.Path()+"/other"))
	for _, test := range []struct {
		rel  string
		perm fs.FileMode
		want fs.FileMode
	}{
		{"new", 0o644, 0o644}, {"sub/new", 0o600, 0o600}, {"sub//./wide", 0o777, 0o777},
		{"bits", 0o755 | fs.ModeSetuid | fs.ModeSetgid, 0o755}, {"linked", 0o640, 0o640},
	} {
		check(t, dir.WriteFile(t.Context(), test.rel, []byte(test.rel), test.perm))
		info, err := os.Lstat(dir.Path() + "/" + test.rel)
		check(t, err)
		if info.Mode() != test.want {
			t.Errorf("%s has mode %v, want %v", test.rel, info.Mode(), test.want)
		}
		data, err := dir.ReadFile(t.Context(), test.rel, 0)
		check(t, err)
		if string(data) != test.rel {
			t.Errorf("%s holds %q", test.rel, data)
		}
	}
	if data, err := os.ReadFile(dir.Path() + "/other"); err != nil || string(data) != "old" {
		t.Errorf("the other name of a replaced file holds %q, %v", data, err)
	}
	if err := dir.WriteFile(t.Context(), "absent/f", nil, 0o644); !errors.Is(err, ErrNotExist) {
		t.Errorf("WriteFile without a directory = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dir.WriteFile(ctx, "linked", []byte("half"), 0o644); !errors.Is(err, context.Canceled) {
		t.Errorf("WriteFile after cancel = %v", err)
	}
	for _, name := range names(t, dir.Path()) {
		if strings.HasPrefix(name, ".gaol-") {
			t.Errorf("%s was left", name)
		}
	}
	if data, err := os.ReadFile(dir.Path() + "/linked"); err != nil || string(data) != "linked" {
		t.Errorf("a canceled write left %q, %v", data, err)
	}
}

func TestWriteFileBelongsToTheWorkspacesOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	ws := t.TempDir()
	check(t, os.Chown(ws, 1234, 2345))
	dir := openDirAt(t, ws)
	check(t, dir.WriteFile(t.Context(), "f", nil, 0o644))
	var st unix.Stat_t
	check(t, unix.Lstat(ws+"/f", &st))
	if uid, gid := dir.Owner(); st.Uid != uid || st.Gid != gid || uid != 1234 || gid != 2345 {
		t.Errorf("owned by %d:%d, workspace by %d:%d", st.Uid, st.Gid, uid, gid)
	}
}

func TestConcurrentWritesAreWhole(t *testing.T) {
	dir := newDir(t)
	contents := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 50_000)}
	check(t, dir.WriteFile(t.Context(), "f", []byte(contents[0]), 0o644))
	var group sync.WaitGroup
	for _, content := range contents {
		group.Go(func() {
			for range 30 {
				if err := dir.WriteFile(t.Context(), "f", []byte(content), 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		data, err := dir.ReadFile(t.Context(), "f", 0)
		if errors.Is(err, ErrReplaced) {
			continue
		}
		check(t, err)
		if string(data) != contents[0] && string(data) != contents[1] {
			t.Fatalf("read a mixture of %d bytes", len(data))
		}
	}
	group.Wait()
}

func TestLongPaths(t *testing.T) {
	dir := newDir(t)
	name := string(make255())
	makeDeep(t, dir.Path(), name, 40)
	rel := strings.Repeat(name+"/", 40)
	check(t, dir.WriteFile(t.Context(), rel+"f", []byte("deep"), 0o644))
	if data, err := dir.ReadFile(t.Context(), rel+"f", 0); err != nil || string(data) != "deep" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	check(t, dir.Remove(rel+"f"))
	check(t, dir.Empty(t.Context()))
}
