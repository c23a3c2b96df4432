package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// newDir opens a fresh workspace.
func newDir(t testing.TB) *Dir {
	t.Helper()
	return openDirAt(t, t.TempDir())
}

func openDirAt(t testing.TB, path string) *Dir {
	t.Helper()
	dir, err := Open(path, Rules{Roots: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t testing.TB, path, data string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(data), 0o644))
}

// makeDeep makes depth nested directories, one descriptor at a time, with a
// file at the bottom.
func makeDeep(t testing.TB, top, name string, depth int) {
	t.Helper()
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	for range depth {
		check(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		check(t, err)
		fd = next
	}
	defer unix.Close(fd)
	file, err := unix.Openat(fd, "bottom", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	check(t, err)
	unix.Close(file)
}

// canary is a tree outside the workspace that must never change, with a secret
// that must never be read.
type canary struct {
	dir, before string
}

const secret = "the secret that is outside"

func newCanary(t testing.TB) canary {
	t.Helper()
	c := canary{dir: t.TempDir()}
	writeFile(t, filepath.Join(c.dir, "secret"), secret)
	writeFile(t, filepath.Join(c.dir, "f"), secret)
	check(t, os.MkdirAll(filepath.Join(c.dir, "sub", "deeper"), 0o750))
	writeFile(t, filepath.Join(c.dir, "sub", "deeper", "f"), secret)
	c.before = fingerprint(t, c.dir)
	return c
}

func (c canary) check(t testing.TB) {
	t.Helper()
	if now := fingerprint(t, c.dir); now != c.before {
		t.Errorf("the directory outside changed:\n%s\nwas\n%s", now, c.before)
	}
}

// fingerprint holds the names, modes, times of change and content of a tree.
func fingerprint(t testing.TB, dir string) string {
	t.Helper()
	var text string
	check(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		text += fmt.Sprintf("%s %o %d %d %d.%d", path, st.Mode, st.Uid, st.Nlink, st.Ctim.Sec, st.Ctim.Nsec)
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(data)
			text += " " + hex.EncodeToString(sum[:8])
		}
		text += "\n"
		return nil
	}))
	return text
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
