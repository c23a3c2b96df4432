package layers_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	reader "github.com/erofs/go-erofs"

	"gaol/images/layers"
)

// Builders of tar headers: f file, d directory, s symbolic link, h hard link,
// wh an empty file with a whiteout's name.

type entry struct {
	tar.Header
	content string
}

func f(name, content string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(1000, 0)}, content}
}

func d(name string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(2000, 0)}, ""}
}

func s(name, target string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: target}, ""}
}

func h(name, target string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeLink, Mode: 0o600, Linkname: target}, ""}
}

func wh(name string) entry { return f(name, "") }

func special(name string, kind byte) entry {
	return entry{tar.Header{Name: name, Typeflag: kind, Mode: 0o666}, ""}
}

// layer packs entries into a tar stream.
func layer(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatalf("header %q: %v", e.Name, err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatalf("content of %q: %v", e.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func chainOf(streams ...[]byte) []layers.Layer {
	var chain []layers.Layer
	for _, s := range streams {
		chain = append(chain, layers.Layer{Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(s)), nil
		}})
	}
	return chain
}

// build returns the image file, or the error after checking that the file was
// left without an image.
func build(t testing.TB, chain []layers.Layer, cfg layers.Config) (*os.File, layers.Info, error) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "image")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	info, err := layers.Build(t.Context(), out, chain, cfg)
	if err != nil {
		if st, statErr := out.Stat(); statErr != nil || st.Size() != 0 {
			t.Errorf("a failed build left %d bytes (%v)", st.Size(), statErr)
		}
	}
	return out, info, err
}

func mustBuild(t testing.TB, streams ...[]byte) (*os.File, layers.Info) {
	t.Helper()
	out, info, err := build(t, chainOf(streams...), layers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	fsck(t, out.Name())
	return out, info
}

// added is what every image gets, so that tables need not repeat it.
func added(path string) bool {
	switch path {
	case ".", "workspace", "proc", "sys", "dev", "dev/pts", "dev/shm", "run", "tmp", "etc", "etc/passwd", "etc/group":
		return true
	}
	return false
}

// contents is the tree as an independent reader sees it: a file's content, "/"
// for a directory, "-> target" for a link, "fifo".
func contents(t testing.TB, image io.ReaderAt) map[string]string {
	t.Helper()
	fsys, err := reader.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	err = fs.WalkDir(fsys, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if added(path) {
			return nil
		}
		switch e.Type() {
		case 0:
			content, err := fs.ReadFile(fsys, path)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			got[path] = string(content)
		case fs.ModeDir:
			got[path] = "/"
		case fs.ModeSymlink:
			target, err := fs.ReadLink(fsys, path)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			got[path] = "-> " + target
		default:
			got[path] = e.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// stat is the raw inode at path, links not followed.
func stat(t testing.TB, image io.ReaderAt, path string) *reader.Stat {
	t.Helper()
	fsys, err := reader.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	info, err := fs.Lstat(fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*reader.Stat)
}

func fsck(t testing.TB, path string) {
	t.Helper()
	tool, err := exec.LookPath("fsck.erofs")
	if err != nil {
		t.Log("fsck.erofs is not installed: its check is left out")
		return
	}
	if out, err := exec.Command(tool, "--extract", path).CombinedOutput(); err != nil {
		t.Fatalf("fsck.erofs: %v\n%s", err, out)
	}
}

// oneOf fails unless err is one of the package's refusals.
func oneOf(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	t.Fatalf("got error %v, want one of %v", err, want)
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }
