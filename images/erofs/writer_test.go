package erofs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	reader "github.com/erofs/go-erofs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gaol/images/erofs"
)

// built writes a tree; make gets the writer for the files' contents.
func built(t testing.TB, dir string, plan func(*erofs.Writer) *erofs.Inode) (*os.File, error) {
	t.Helper()
	f, err := os.CreateTemp(dir, "image")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w, err := erofs.Create(f)
	if err != nil {
		t.Fatal(err)
	}
	return f, w.Finish(plan(w), erofs.Label{})
}

func mustBuild(t testing.TB, plan func(*erofs.Writer) *erofs.Inode) *os.File {
	t.Helper()
	f, err := built(t, t.TempDir(), plan)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func file(t testing.TB, w *erofs.Writer, content string) *erofs.Inode {
	t.Helper()
	data, err := w.Append(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return &erofs.Inode{Mode: erofs.Regular | 0o644, Data: data}
}

func directory(entries map[string]*erofs.Inode) *erofs.Inode {
	return &erofs.Inode{Mode: erofs.Directory | 0o755, Entries: entries}
}

// described is one line a file, as an independent reader sees them.
func described(t testing.TB, image io.ReaderAt) map[string]string {
	t.Helper()
	fsys, err := reader.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("stat %s: %w", path, err)
		}
		st := info.Sys().(*reader.Stat)
		line := fmt.Sprintf("%v %d:%d %d.%d links=%d", st.Mode, st.UID, st.GID, int64(st.Mtime), st.MtimeNs, st.Nlink)
		switch info.Mode().Type() {
		case 0:
			content, err := fs.ReadFile(fsys, path)
			if err != nil {
				return fmt.Errorf("read %s: %w", path, err)
			}
			line += fmt.Sprintf(" %d:%.20q", len(content), content)
		case fs.ModeSymlink:
			target, err := fs.ReadLink(fsys, path)
			if err != nil {
				return fmt.Errorf("read link %s: %w", path, err)
			}
			line += " -> " + target
		}
		got[path] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
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

func TestTreeReadsBack(t *testing.T) {
	long := strings.Repeat("t", erofs.MaxTarget)
	big := strings.Repeat("0123456789abcdef", 300_000)
	f := mustBuild(t, func(w *erofs.Writer) *erofs.Inode {
		shared := file(t, w, "shared")
		shared.Mode, shared.UID, shared.GID = erofs.Regular|0o4751, 1<<20, 7
		shared.Mtime, shared.MtimeNsec = 1_700_000_000, 123_456_789
		return directory(map[string]*erofs.Inode{
			"!before-dot": file(t, w, "sorted before the dot"),
			"empty":       file(t, w, ""),
			"block":       file(t, w, strings.Repeat("b", erofs.BlockSize)),
			"big":         file(t, w, big),
			"holes":       file(t, w, strings.Repeat("\x00", 3<<20)+"end"),
			"one":         shared,
			"dir":         directory(map[string]*erofs.Inode{"two": shared, "sub": directory(nil)}),
			"link":        {Mode: erofs.Symlink | 0o777, Target: "dir/two", Mtime: -5},
			"long":        {Mode: erofs.Symlink | 0o777, Target: long},
			"pipe":        {Mode: erofs.FIFO | 0o600},
		})
	})
	want := map[string]string{
		".":           "drwxr-xr-x 0:0 0.0 links=3",
		"!before-dot": `-rw-r--r-- 0:0 0.0 links=1 21:"sorted before the do"`,
		"empty":       `-rw-r--r-- 0:0 0.0 links=1 0:""`,
		"block":       `-rw-r--r-- 0:0 0.0 links=1 4096:"bbbbbbbbbbbbbbbbbbbb"`,
		"big":         `-rw-r--r-- 0:0 0.0 links=1 4800000:"0123456789abcdef0123"`,
		"holes":       `-rw-r--r-- 0:0 0.0 links=1 3145731:"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"`,
		"one":         `urwxr-x--x 1048576:7 1700000000.123456789 links=2 6:"shared"`,
		"dir":         "drwxr-xr-x 0:0 0.0 links=3",
		"dir/two":     `urwxr-x--x 1048576:7 1700000000.123456789 links=2 6:"shared"`,
		"dir/sub":     "drwxr-xr-x 0:0 0.0 links=2",
		"link":        "Lrwxrwxrwx 0:0 -5.0 links=1 -> dir/two",
		"long":        "Lrwxrwxrwx 0:0 0.0 links=1 -> " + long,
		"pipe":        "prw------- 0:0 0.0 links=1",
	}
	if diff := cmp.Diff(want, described(t, f)); diff != "" {
		t.Fatal(diff)
	}
	fsck(t, f.Name())
}

// TestDirectoriesOfAllSizes crosses every border: inline, one block, several.
func TestDirectoriesOfAllSizes(t *testing.T) {
	for _, count := range []int{0, 1, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 500, 5000} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			f := mustBuild(t, func(w *erofs.Writer) *erofs.Inode {
				entries := map[string]*erofs.Inode{}
				for n := range count {
					entries[fmt.Sprintf("%s-%d", strings.Repeat("n", 50+n%7), n)] = file(t, w, fmt.Sprint(n))
				}
				return directory(map[string]*erofs.Inode{"d": directory(entries)})
			})
			if got := len(described(t, f)); got != count+2 {
				t.Fatalf("read back %d files, want %d", got, count+2)
			}
			fsck(t, f.Name())
		})
	}
}

// TestRegularFilesAreNeverInline looks at the raw inodes: gVisor cannot map
// inline data (the mapping dies with SIGBUS).
func TestRegularFilesAreNeverInline(t *testing.T) {
	f := mustBuild(t, func(w *erofs.Writer) *erofs.Inode {
		return directory(map[string]*erofs.Inode{"tiny": file(t, w, "x"), "link": {Mode: erofs.Symlink | 0o777, Target: "tiny"}})
	})
	raw, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	meta := int(le.Uint32(raw[1024+40:])) * erofs.BlockSize
	seen := map[uint16]int{}
	for at := meta + 64; at+64 <= len(raw); at += 32 {
		if le.Uint16(raw[at:])&^0xe != 1 || le.Uint32(raw[at+44:]) == 0 {
			continue // not an inode
		}
		mode, layout := le.Uint16(raw[at+4:]), le.Uint16(raw[at:])>>1
		seen[mode&erofs.TypeMask]++
		if mode&erofs.TypeMask != erofs.Regular {
			continue
		}
		if layout != 0 {
			t.Errorf("regular file has data layout %d, want 0 (flat, plain)", layout)
		}
		if data := int(le.Uint32(raw[at+16:])) * erofs.BlockSize; raw[data] != 'x' {
			t.Errorf("data block at %#x starts with %q", data, raw[data])
		}
	}
	if seen[erofs.Regular] != 1 || seen[erofs.Directory] != 1 || seen[erofs.Symlink] != 1 {
		t.Fatalf("found inodes %v", seen)
	}
	if len(raw)%erofs.BlockSize != 0 {
		t.Fatalf("image of %d bytes ends inside a block, so its last page cannot be mapped", len(raw))
	}
}

func TestUnfitTreesAreRefused(t *testing.T) {
	twice := directory(nil)
	for name, root := range map[string]*erofs.Inode{
		"root is a file":      {Mode: erofs.Regular},
		"directory twice":     directory(map[string]*erofs.Inode{"a": twice, "b": twice}),
		"empty name":          directory(map[string]*erofs.Inode{"": {Mode: erofs.FIFO}}),
		"dot":                 directory(map[string]*erofs.Inode{".": {Mode: erofs.FIFO}}),
		"dot dot":             directory(map[string]*erofs.Inode{"..": {Mode: erofs.FIFO}}),
		"slash":               directory(map[string]*erofs.Inode{"a/b": {Mode: erofs.FIFO}}),
		"zero byte":           directory(map[string]*erofs.Inode{"a\x00": {Mode: erofs.FIFO}}),
		"name of 256 bytes":   directory(map[string]*erofs.Inode{strings.Repeat("n", 256): {Mode: erofs.FIFO}}),
		"name over a block":   directory(map[string]*erofs.Inode{strings.Repeat("n", 5000): {Mode: erofs.FIFO}}),
		"empty target":        directory(map[string]*erofs.Inode{"a": {Mode: erofs.Symlink}}),
		"target of a block":   directory(map[string]*erofs.Inode{"a": {Mode: erofs.Symlink, Target: strings.Repeat("t", 4096)}}),
		"target with a zero":  directory(map[string]*erofs.Inode{"a": {Mode: erofs.Symlink, Target: "a\x00b"}}),
		"device":              directory(map[string]*erofs.Inode{"a": {Mode: erofs.Character}}),
		"file without a type": directory(map[string]*erofs.Inode{"a": {}}),
	} {
		t.Run(name, func(t *testing.T) {
			f, err := built(t, t.TempDir(), func(*erofs.Writer) *erofs.Inode { return root })
			if !errors.Is(err, erofs.ErrTree) {
				t.Fatalf("got %v, want ErrTree", err)
			}
			if _, err := reader.Open(f); err == nil {
				t.Fatal("the refused image opens")
			}
		})
	}
}

func TestContentReadsBackBeforeFinish(t *testing.T) {
	f := filepath.Join(t.TempDir(), "image")
	out, err := os.Create(f)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := erofs.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "first", strings.Repeat("\x00", 5<<20), "last"} {
		e, err := w.Append(strings.NewReader(want))
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Content(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Fatalf("read back %d bytes, %v; want %d", len(got), err, len(want))
		}
	}
}

func TestReaderErrorIsKept(t *testing.T) {
	torn := errors.New("torn")
	_, err := built(t, t.TempDir(), func(w *erofs.Writer) *erofs.Inode {
		if _, err := w.Append(io.MultiReader(strings.NewReader("half"), errReader{torn})); !errors.Is(err, torn) {
			t.Fatalf("got %v, want the reader's own error", err)
		}
		return directory(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// TestRandomTrees builds trees nobody thought of, twice, and compares what an
// independent reader sees with what was asked for.
func TestRandomTrees(t *testing.T) {
	dir := t.TempDir()
	name := rapid.StringMatching(`[!-.0-~]{1,12}`).Filter(func(s string) bool { return s != "." && s != ".." })
	rapid.Check(t, func(rt *rapid.T) {
		type spec struct{ path, content string }
		var specs []spec
		for range rapid.IntRange(0, 40).Draw(rt, "files") {
			parts := rapid.SliceOfN(name, 1, 4).Draw(rt, "path")
			specs = append(specs, spec{strings.Join(parts, "/"), rapid.StringN(0, 50, 9000).Draw(rt, "content")})
		}
		want := map[string]string{}
		plan := func(w *erofs.Writer) *erofs.Inode {
			clear(want)
			root := directory(map[string]*erofs.Inode{})
			for _, s := range specs {
				at, parts := root, strings.Split(s.path, "/")
				for _, p := range parts[:len(parts)-1] {
					if at.Entries[p] == nil {
						at.Entries[p] = directory(map[string]*erofs.Inode{})
					}
					if at = at.Entries[p]; !at.IsDir() {
						break
					}
				}
				last := parts[len(parts)-1]
				if at.IsDir() && at.Entries[last] == nil {
					at.Entries[last] = file(t, w, s.content)
					want[s.path] = s.content
				}
			}
			return root
		}
		a, err := built(t, dir, plan)
		if err != nil {
			rt.Fatal(err)
		}
		b, err := built(t, dir, plan)
		if err != nil {
			rt.Fatal(err)
		}
		defer os.Remove(a.Name())
		defer os.Remove(b.Name())
		first, _ := os.ReadFile(a.Name())
		second, _ := os.ReadFile(b.Name())
		if !bytes.Equal(first, second) {
			rt.Fatal("two builds differ")
		}
		fsys, err := reader.Open(a)
		if err != nil {
			rt.Fatal(err)
		}
		for path, content := range want {
			got, err := fs.ReadFile(fsys, path)
			if err != nil || string(got) != content {
				rt.Fatalf("%q: %v, %d bytes, want %d", path, err, len(got), len(content))
			}
		}
	})
}
