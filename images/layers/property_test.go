package layers_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gaol/images/layers"
)

func read(t testing.TB, f *os.File) []byte {
	t.Helper()
	all, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSameLayersSameBytes(t *testing.T) {
	var entries []entry
	for _, name := range []string{"z", "a/b", "a/a", "m/x/y", "!", "~"} {
		entries = append(entries, f(name, repeat(name, 3000)))
	}
	a, _ := mustBuild(t, layer(t, entries...), layer(t, wh("a/.wh.a"), h("b", "m/x/y")))
	b, _ := mustBuild(t, layer(t, entries...), layer(t, wh("a/.wh.a"), h("b", "m/x/y")))
	if !bytes.Equal(read(t, a), read(t, b)) {
		t.Fatal("two builds differ")
	}
}

func TestUUIDIsTheCallers(t *testing.T) {
	id := [16]byte{1, 2, 3, 16}
	out, _, err := build(t, chainOf(), layers.Config{UUID: id})
	if err != nil {
		t.Fatal(err)
	}
	fsck(t, out.Name())
	if got := read(t, out)[1024+48:][:16]; !bytes.Equal(got, id[:]) {
		t.Fatalf("superblock says %x", got)
	}
}

// TestSmallFilesAreNotInline reads the raw inode of a small file.
func TestSmallFilesAreNotInline(t *testing.T) {
	out, _ := mustBuild(t, layer(t, f("small", "tiny content")))
	raw, st := read(t, out), stat(t, out, "small")
	meta := binary.LittleEndian.Uint32(raw[1024+40:])
	inode := raw[int64(meta)*4096+st.Ino*32:]
	if layout := binary.LittleEndian.Uint16(inode) >> 1 & 7; layout != 0 {
		t.Errorf("data layout %d, want 0", layout)
	}
	if block := binary.LittleEndian.Uint32(inode[16:]); !bytes.HasPrefix(raw[int64(block)*4096:], []byte("tiny content\x00")) {
		t.Errorf("block %d does not start with the content", block)
	}
}

// TestNothingOutsideIsTouched runs the ways out of ATTACKS.md D1 beside files
// that must stay as they are.
func TestNothingOutsideIsTouched(t *testing.T) {
	dir := t.TempDir()
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, []byte("alive"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "cwd"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(dir, "cwd"))
	out, info := mustBuild(t, layer(t, f("../canary", "1"), f(canary, "2"), s("l", dir), f("l/canary", "3"), h("../h", canary), wh("../.wh.canary"), s("up", ".."), f("up/canary", "4")),
		layer(t, wh("../.wh.canary"), wh(dir+"/.wh..wh..opq")))
	got, err := os.ReadFile(canary)
	if err != nil || string(got) != "alive" {
		t.Fatalf("canary: %q, %v", got, err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(names) != 0 {
		t.Fatalf("left on the host: %v, %v", names, err)
	}
	// The link means the image's own directory of that name.
	if c := contents(t, out); c["h"] != "3" || info.Bytes != 4 {
		t.Fatalf("image: %v, %d bytes", c, info.Bytes)
	}
}

// TestWhiteoutsAgainstModel compares random layers with a simpler rule, which
// needs each layer as a whole: first take away what its whiteouts name, then
// add its files.
func TestWhiteoutsAgainstModel(t *testing.T) {
	dirs := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 3)
	rapid.Check(t, func(rt *rapid.T) {
		want := tree{}
		var streams [][]byte
		for n := range rapid.IntRange(1, 4).Draw(rt, "layers") {
			var entries []entry
			added := tree{}
			for range rapid.IntRange(0, 12).Draw(rt, "entries") {
				dir := path.Join(dirs.Draw(rt, "dir")...)
				switch rapid.IntRange(0, 3).Draw(rt, "kind") {
				case 0:
					name := path.Join(dir, rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "file"))
					entries = append(entries, f(name, string(rune('0'+n))))
					added[name] = string(rune('0' + n))
					parents(added, path.Dir(name))
				case 1:
					if dir != "" {
						entries = append(entries, d(dir))
						parents(added, dir)
					}
				case 2:
					name := rapid.SampledFrom([]string{"x", "y", "a", "b"}).Draw(rt, "whiteout")
					entries = append(entries, wh(path.Join(dir, ".wh."+name)))
					without(want, path.Join(dir, name), true)
				case 3:
					entries = append(entries, wh(path.Join(dir, ".wh..wh..opq")))
					without(want, dir, false)
				}
			}
			maps.Copy(want, added)
			streams = append(streams, layer(t, entries...))
		}
		out, _, err := build(t, chainOf(streams...), layers.Config{})
		if err != nil {
			rt.Fatal(err)
		}
		defer out.Close()
		defer os.Remove(out.Name())
		if diff := cmp.Diff(want, contents(t, out)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func parents(of tree, dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		of[dir] = "/"
	}
}

// without removes what lies below a path, and with self the path too.
func without(from tree, name string, self bool) {
	for _, p := range slices.Collect(maps.Keys(from)) {
		if self && p == name || name == "" || strings.HasPrefix(p, name+"/") {
			delete(from, p)
		}
	}
}
