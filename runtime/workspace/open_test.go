package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpen(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"ws/sub", "home/project", "state/store/deep", "elsewhere"} {
		check(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	writeFile(t, filepath.Join(base, "ws/file"), "x")
	check(t, os.Symlink("ws", filepath.Join(base, "link")))
	check(t, os.Symlink("/etc", filepath.Join(base, "etc")))
	check(t, os.Symlink("loop", filepath.Join(base, "loop")))
	check(t, unix.Mkfifo(filepath.Join(base, "ws/fifo"), 0o600))
	rules := Rules{
		Roots:     []string{filepath.Join(base, "ws"), filepath.Join(base, "home"), filepath.Join(base, "state"), filepath.Join(base, "link")},
		Forbidden: []string{filepath.Join(base, "state/store"), filepath.Join(base, "absent/store")},
		Exact:     []string{filepath.Join(base, "home")},
	}
	for _, test := range []struct {
		path string
		want error
	}{
		{"ws", nil},
		{"ws/", nil},
		{"ws/./sub", nil},
		{"home/project", nil},
		{"home", ErrNotAllowed},
		{"elsewhere", ErrNotAllowed},
		{"state", ErrNotAllowed},
		{"state/store", ErrNotAllowed},
		{"state/store/deep", ErrNotAllowed},
		{"ws/../ws", ErrNotAllowed},
		{"ws/absent", ErrNotExist},
		{"ws/file", ErrNotDirectory},
		{"ws/file/x", ErrNotDirectory},
		{"ws/fifo", ErrNotDirectory},
		{"link", ErrSymlink},
		{"link/sub", ErrSymlink},
		{"etc", ErrSymlink},
		{"etc/ssl", ErrSymlink},
		{"loop", ErrSymlink},
		{"loop/x", ErrSymlink},
	} {
		dir, err := Open(base+"/"+test.path, rules)
		if !errors.Is(err, test.want) {
			t.Errorf("Open(%s) = %v, want %v", test.path, err, test.want)
		}
		if err == nil {
			if dir.Path() != filepath.Clean(base+"/"+test.path) {
				t.Errorf("Path() = %s for %s", dir.Path(), test.path)
			}
			check(t, dir.Recheck())
			dir.Close()
		}
	}
}

func TestOpenRefusesTheSystem(t *testing.T) {
	for _, path := range []string{
		"/", "//", "/.", "/proc", "/proc/self", "/proc/1/root", "/sys", "/sys/kernel", "/dev", "/dev/shm",
		"/run", "/boot", "/etc", "/etc/ssl", "/usr", "/usr/local", "/bin", "/sbin", "/lib", "/lib64",
		"/var", "/root", "/home", "/tmp", "relative", "", "/tmp/a\x00b", "/tmp/../etc",
	} {
		dir, err := Open(path, Rules{Roots: []string{"/"}})
		if !errors.Is(err, ErrNotAllowed) {
			t.Errorf("Open(%q) = %v, want ErrNotAllowed", path, err)
		}
		if err == nil {
			dir.Close()
		}
	}
}

func TestOpenRules(t *testing.T) {
	ws := t.TempDir()
	for _, test := range []struct {
		name  string
		rules Rules
		want  error
	}{
		{"zero value", Rules{}, ErrNotAllowed},
		{"root of everything", Rules{Roots: []string{"/"}}, nil},
		{"sibling with the same beginning", Rules{Roots: []string{ws[:len(ws)-1]}}, ErrNotAllowed},
		{"relative root", Rules{Roots: []string{"."}}, ErrBadRule},
		{"relative forbidden", Rules{Roots: []string{"/"}, Forbidden: []string{"x"}}, ErrBadRule},
		{"forbidden beneath, not made yet", Rules{Roots: []string{"/"}, Forbidden: []string{ws + "/state"}}, ErrNotAllowed},
		{"forbidden itself", Rules{Roots: []string{"/"}, Forbidden: []string{ws}}, ErrNotAllowed},
		{"forbidden above", Rules{Roots: []string{"/"}, Forbidden: []string{filepath.Dir(ws)}}, ErrNotAllowed},
	} {
		dir, err := Open(ws, test.rules)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: Open = %v, want %v", test.name, err, test.want)
		}
		if err == nil {
			dir.Close()
		}
	}
}

func TestSymlinkErrorNamesTheRealPath(t *testing.T) {
	base := t.TempDir()
	check(t, os.MkdirAll(base+"/real/ws", 0o755))
	check(t, os.Symlink("real", base+"/link"))
	_, err := Open(base+"/link/ws", Rules{Roots: []string{base}})
	var link *SymlinkError
	if !errors.As(err, &link) {
		t.Fatalf("Open = %v, want a *SymlinkError", err)
	}
	if link.Link != base+"/link" || link.Real != base+"/real/ws" {
		t.Errorf("got link %s, real %s", link.Link, link.Real)
	}
}

func TestRecheckAfterReplacement(t *testing.T) {
	base := t.TempDir()
	ws := base + "/ws"
	check(t, os.Mkdir(ws, 0o755))
	rules := Rules{Roots: []string{base}}
	dir, err := Open(ws, rules)
	check(t, err)
	defer dir.Close()
	source, err := OpenSource(ws, rules)
	check(t, err)
	defer source.Close()

	check(t, os.Rename(ws, base+"/old"))
	if err := dir.Recheck(); !errors.Is(err, ErrNotExist) {
		t.Errorf("Recheck of a directory that has gone = %v", err)
	}
	check(t, os.Mkdir(ws, 0o755))
	if err := dir.Recheck(); !errors.Is(err, ErrReplaced) {
		t.Errorf("Recheck of a replaced directory = %v", err)
	}
	if err := source.Recheck(); !errors.Is(err, ErrReplaced) {
		t.Errorf("Recheck of a replaced source = %v", err)
	}
	check(t, os.Remove(ws))
	check(t, os.Symlink("old", ws))
	if err := source.Recheck(); !errors.Is(err, ErrSymlink) {
		t.Errorf("Recheck of a source that is a link to itself = %v", err)
	}
}

func TestOpenSource(t *testing.T) {
	base := t.TempDir()
	writeFile(t, base+"/file", "x")
	check(t, os.Mkdir(base+"/dir", 0o755))
	check(t, os.Symlink("file", base+"/link"))
	check(t, unix.Mkfifo(base+"/fifo", 0o600))
	rules := Rules{Roots: []string{base}, Forbidden: []string{base + "/dir/own"}}
	check(t, os.Mkdir(base+"/dir/own", 0o755))
	writeFile(t, base+"/dir/own/key", "x")
	for _, test := range []struct {
		path string
		dir  bool
		want error
	}{
		{"file", false, nil},
		{"dir", false, ErrNotAllowed},
		{"dir/own/key", false, ErrNotAllowed},
		{"link", false, ErrSymlink},
		{"fifo", false, ErrNotRegular},
		{"absent", false, ErrNotExist},
	} {
		source, err := OpenSource(base+"/"+test.path, rules)
		if !errors.Is(err, test.want) {
			t.Errorf("OpenSource(%s) = %v, want %v", test.path, err, test.want)
		}
		if err != nil {
			continue
		}
		var st unix.Stat_t
		check(t, unix.Lstat(base+"/"+test.path, &st))
		if source.id != (identity{st.Dev, st.Ino}) || source.IsDir() != test.dir {
			t.Errorf("%s: identity %d:%d, want %d:%d", test.path, source.id.dev, source.id.ino, st.Dev, st.Ino)
		}
		check(t, source.Recheck())
		source.Close()
	}
}
