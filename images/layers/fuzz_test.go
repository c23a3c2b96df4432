package layers_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	reader "github.com/erofs/go-erofs"

	"gaol/images/layers"
)

// FuzzBuild feeds two layers of any bytes, their header checksums put right (a
// mutation would not get past them otherwise). Whatever they are: no panic, output
// within the limits, an error leaves nothing, and what is accepted opens, reads
// to the end and holds no name that a layer must not make.
func FuzzBuild(f *testing.F) {
	seeds := [][]entry{
		{},
		{d("a/"), file("a/x", "1"), file("b", "2"), wh(".wh.c")},
		{wh("a/.wh..wh..opq"), file("a/y", "1"), wh(".wh.b"), wh(".wh.")},
		{file("f", "1"), h("h1", "f"), h("h2", "/f"), s("s", "f"), h("h3", "s"), h("no/h4", "f"), h("early", "late"), file("late", "2")},
		{s("l", "/var"), file("l/x", "1"), s("up", "../../.."), file("up/y", "2"), file("./../z", "3")},
		{h("h", "../../etc/passwd")},
		{special("n", tar.TypeChar), special("p", tar.TypeFifo), s("tmp", "/etc"), file("etc/passwd", "a:x:1000:1:::\n")},
		{file("d/"+strings.Repeat("n", 200), strings.Repeat("x", 5000))},
	}
	for n, upper := range seeds {
		f.Add(layer(f, seeds[(n+1)%len(seeds)]...), layer(f, upper...))
	}
	f.Add(rawHeader('0', 1<<60, nil), paxRecords(f, "GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=x", "GNU.sparse.realsize=99999"))

	limits := layers.Limits{Bytes: 1 << 20, Entries: 500, Names: 1 << 16, Depth: 20}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		out, err := os.Create(filepath.Join(dir, "image"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		lower, upper = mended(lower), mended(upper)
		_, err = layers.Build(t.Context(), out, chainOf(lower, upper), layers.Config{Limits: limits})
		st, statErr := out.Stat()
		if statErr != nil {
			t.Fatal(statErr)
		}
		if err != nil {
			if st.Size() != 0 {
				t.Fatalf("an error left %d bytes: %v", st.Size(), err)
			}
			return
		}
		// Each entry costs at most its data's last block, its inode and dirent.
		if most := limits.Bytes + int64(limits.Entries+20)*4*4096; st.Size() > most {
			t.Fatalf("image of %d bytes, at most %d are fair", st.Size(), most)
		}
		if err := readable(out); err != nil {
			t.Fatal(err)
		}
		first := read(t, out)
		if _, err := layers.Build(t.Context(), out, chainOf(lower, upper), layers.Config{Limits: limits}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, read(t, out)) {
			t.Fatal("the second build differs")
		}
	})
}

// file is f, which the fuzz target's own f hides.
func file(name, content string) entry { return f(name, content) }

// readable walks and reads all of the image.
func readable(image io.ReaderAt) error {
	fsys, err := reader.Open(image)
	if err != nil {
		return err
	}
	return fs.WalkDir(fsys, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := e.Name(); path != "." && (strings.HasPrefix(name, ".wh.") || strings.ContainsAny(name, "/\x00") || name == "..") {
			return errors.New("a forbidden name: " + path)
		}
		switch e.Type() {
		case 0:
			_, err = fs.ReadFile(fsys, path)
		case fs.ModeSymlink:
			_, err = fs.ReadLink(fsys, path)
		case fs.ModeDir, fs.ModeNamedPipe:
		default:
			return errors.New("a forbidden type: " + path)
		}
		return err
	})
}
