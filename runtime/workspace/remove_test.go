package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostile trees, each made in a fresh directory.
var hostile = map[string]func(t testing.TB, dir, outside string){
	"empty": func(testing.TB, string, string) {},
	"links out": func(t testing.TB, dir, outside string) {
		t.Helper()
		check(t, os.Symlink(outside, dir+"/dir"))
		check(t, os.Symlink(outside+"/secret", dir+"/file"))
		check(t, os.Symlink("loop", dir+"/loop"))
		check(t, os.Symlink("nowhere", dir+"/dangling"))
		check(t, os.Symlink("/", dir+"/slash"))
	},
	"modes": func(t testing.TB, dir, outside string) {
		t.Helper()
		check(t, os.MkdirAll(dir+"/a/b/c", 0o755))
		writeFile(t, dir+"/a/b/f", "x")
		check(t, os.Symlink(outside, dir+"/a/b/l"))
		check(t, os.Chmod(dir+"/a/b/c", 0o400))
		check(t, os.Chmod(dir+"/a/b", 0))
		check(t, os.Chmod(dir+"/a", 0o500))
	},
	"specials": func(t testing.TB, dir, _ string) {
		t.Helper()
		check(t, unix.Mkfifo(dir+"/fifo", 0o600))
		check(t, unix.Mknod(dir+"/socket", unix.S_IFSOCK|0o600, 0))
	},
	"odd names": func(t testing.TB, dir, _ string) {
		t.Helper()
		for _, name := range oddNames {
			check(t, os.MkdirAll(dir+"/"+name+"/"+name, 0o755))
		}
	},
	"deep": func(t testing.TB, dir, _ string) {
		t.Helper()
		makeDeep(t, dir, "d", 3000)
	},
	"deep with long names": func(t testing.TB, dir, _ string) {
		t.Helper()
		makeDeep(t, dir, string(make255()), 300)
	},
	"many chains": func(t testing.TB, dir, _ string) {
		t.Helper()
		for i := range 50 {
			check(t, os.MkdirAll(fmt.Sprintf("%s/x%d", dir, i), 0o755))
			makeDeep(t, fmt.Sprintf("%s/x%d", dir, i), "d", 60)
		}
	},
	"deep and locked": func(t testing.TB, dir, _ string) {
		t.Helper()
		path := dir
		for range 100 {
			path += "/d"
		}
		check(t, os.MkdirAll(path, 0o755))
		for ; path != dir; path = filepath.Dir(path) {
			check(t, os.Chmod(path, 0))
		}
	},
}

var oddNames = []string{"a\nb", "-rf", "sp ace", "q'\"", "\xff\xfe", "é", "e\u0301", string(make255())}

func make255() []byte {
	name := make([]byte, 255)
	for i := range name {
		name[i] = 'x'
	}
	return name
}

func TestRemoveAllHostile(t *testing.T) {
	for name, build := range hostile {
		t.Run(name, func(t *testing.T) {
			outside := newCanary(t)
			base := t.TempDir()
			check(t, os.Mkdir(base+"/ws", 0o755))
			writeFile(t, base+"/sibling", "x")
			build(t, base+"/ws", outside.dir)
			parent, err := os.Open(base)
			check(t, err)
			defer parent.Close()
			begin := time.Now()
			check(t, RemoveAll(t.Context(), parent, "ws"))
			t.Logf("removed in %v", time.Since(begin))
			if left := names(t, base); len(left) != 1 {
				t.Errorf("left %q", left)
			}
			outside.check(t)
		})
	}
}

func TestEmptyHostile(t *testing.T) {
	for name, build := range hostile {
		t.Run(name, func(t *testing.T) {
			outside := newCanary(t)
			if name == "deep" && testing.Short() {
				t.Skip("slow to make")
			}
			dir := newDir(t)
			build(t, dir.Path(), outside.dir)
			check(t, os.Chmod(dir.Path(), 0))
			check(t, dir.Empty(t.Context()))
			if left := names(t, dir.Path()); len(left) != 0 {
				t.Errorf("left %q", left)
			}
			check(t, dir.Recheck())
			outside.check(t)
		})
	}
}

func TestRemoveAllSingle(t *testing.T) {
	base := t.TempDir()
	outside := newCanary(t)
	parent, err := os.Open(base)
	check(t, err)
	defer parent.Close()
	writeFile(t, base+"/file", "x")
	check(t, os.Symlink(outside.dir, base+"/link"))
	for _, name := range []string{"file", "link", "absent"} {
		check(t, RemoveAll(t.Context(), parent, name))
	}
	for _, name := range []string{"", ".", "..", "a/b", "../x", "/x", "a\x00b"} {
		if err := RemoveAll(t.Context(), parent, name); !errors.Is(err, ErrBadName) {
			t.Errorf("RemoveAll(%q) = %v, want ErrBadName", name, err)
		}
	}
	if left := names(t, base); len(left) != 0 {
		t.Errorf("left %q", left)
	}
	outside.check(t)
}
