package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// refused imports the archive and expects the class of error, and nothing
// left of the archive.
func refused(t *testing.T, archive io.Reader, limits Limits, want error) {
	t.Helper()
	s := openStore(t, Config{Root: filepath.Join(t.TempDir(), "store"), Limits: limits})
	_, err := s.Import(t.Context(), archive, ImportOptions{})
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	t.Log(err)
	checkEmpty(t, s)
}

// Cases H6 and D4.
func TestImportRefusesLies(t *testing.T) {
	none := digest.Digest("sha256:" + strings.Repeat("0", 64))
	for name, build := range map[string]func(l *layout){
		"digest climbs": func(l *layout) {
			d := l.image(picture{})
			d.Digest = "sha256:../../../../tmp/x"
			l.add("x", d)
		},
		"digest upper case": func(l *layout) {
			d := l.image(picture{})
			d.Digest = digest.Digest("sha256:" + strings.ToUpper(d.Digest.Encoded()))
			l.add("x", d)
		},
		"digest short":   func(l *layout) { d := l.image(picture{}); d.Digest = "sha256:abcdef"; l.add("x", d) },
		"digest sha512":  func(l *layout) { d := l.image(picture{}); d.Digest = digest.SHA512.FromString("x"); l.add("x", d) },
		"digest unknown": func(l *layout) { d := l.image(picture{}); d.Digest = "md5:0123456789abcdef"; l.add("x", d) },
		"layer digest climbs": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(_ map[string]any, m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../../etc/passwd" }}))
		},
		"layer missing": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(_ map[string]any, m *ocispec.Manifest) { m.Layers[0].Digest = none }}))
		},
		"layer size too small": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(_ map[string]any, m *ocispec.Manifest) { m.Layers[0].Size-- }}))
		},
		"layer size too large": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(_ map[string]any, m *ocispec.Manifest) { m.Layers[0].Size++ }}))
		},
		"layer of unknown type": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(_ map[string]any, m *ocispec.Manifest) { m.Layers[0].MediaType = "text/html" }}))
		},
		"layer elsewhere": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(_ map[string]any, m *ocispec.Manifest) {
				m.Layers[0].MediaType = ocispec.MediaTypeImageLayerNonDistributable //nolint:staticcheck // it is what must be refused
			}}))
		},
		"diff id wrong": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(c map[string]any, _ *ocispec.Manifest) {
				c["rootfs"] = map[string]any{"type": "layers", "diff_ids": []digest.Digest{none}}
			}}))
		},
		"diff id climbs": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(c map[string]any, _ *ocispec.Manifest) {
				c["rootfs"] = map[string]any{"type": "layers", "diff_ids": []string{"sha256:../../x"}}
			}}))
		},
		"diff ids missing": func(l *layout) {
			l.add("x", l.image(picture{spoil: func(c map[string]any, _ *ocispec.Manifest) {
				c["rootfs"] = map[string]any{"type": "layers"}
			}}))
		},
		"blob under a wrong name": func(l *layout) {
			l.add("x", l.image(picture{}))
			l.files[0].name = "blobs/sha256/" + none.Encoded()
		},
		"blob with trailing bytes": func(l *layout) {
			l.add("x", l.image(picture{}))
			l.files[0].data = append(l.files[0].data, "more"...)
		},
		"manifest is an index too": func(l *layout) {
			d := l.image(picture{})
			l.add("x", l.twoFaced(d, ocispec.MediaTypeImageManifest))
		},
		"index is a manifest too": func(l *layout) {
			d := l.image(picture{})
			l.add("x", l.twoFaced(d, ocispec.MediaTypeImageIndex))
		},
		"manifest called index": func(l *layout) {
			d := l.image(picture{})
			d.MediaType = ocispec.MediaTypeImageIndex
			l.add("x", d)
		},
		"keys twice": func(l *layout) {
			d := l.image(picture{})
			for _, f := range l.files {
				if strings.HasSuffix(f.name, d.Digest.Encoded()) {
					twice := bytes.Replace(f.data, []byte(`{"schemaVersion":2`), []byte(`{"schemaVersion":2,"SchemaVersion":2`), 1)
					l.add("x", l.blob(d.MediaType, twice))
				}
			}
		},
		"layer in bzip2": func(l *layout) {
			l.add("x", l.image(picture{pack: func([]byte) []byte { return []byte("BZh91AY&SY....") }, packType: ocispec.MediaTypeImageLayer}))
		},
		"layer is no tar": func(l *layout) {
			l.add("x", l.image(picture{layers: [][]byte{bytes.Repeat([]byte("x"), 2048)}}))
		},
		"gzip cut off": func(l *layout) {
			l.add("x", l.image(picture{pack: func(b []byte) []byte { z := gzipped(b); return z[:len(z)-9] }, packType: ocispec.MediaTypeImageLayerGzip}))
		},
		"user overflows":        spoiledUser("4294967296"),
		"user minus one":        spoiledUser("-1"),
		"user plus one":         spoiledUser("+1"),
		"user wraps to -1":      spoiledUser("4294967295"),
		"group overflows":       spoiledUser("1:4294967296"),
		"user unknown":          spoiledUser("app"),
		"group unknown":         spoiledUser("1000:app"),
		"group empty":           spoiledUser("1000:"),
		"user with a line feed": spoiledUser("a\nroot"),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout()
			build(l)
			refused(t, bytes.NewReader(l.tar()), Limits{}, ErrInvalid)
		})
	}
}

func spoiledUser(user string) func(l *layout) {
	return func(l *layout) { l.add("x", l.image(picture{config: map[string]any{"User": user}})) }
}

// twoFaced stores a document that has the fields of both kinds.
func (l *layout) twoFaced(d ocispec.Descriptor, mediaType string) ocispec.Descriptor {
	for _, f := range l.files {
		if !strings.HasSuffix(f.name, d.Digest.Encoded()) {
			continue
		}
		var doc map[string]any
		must(json.Unmarshal(f.data, &doc))
		doc["mediaType"] = mediaType
		doc["manifests"] = []any{d}
		out := l.json(mediaType, doc)
		out.Platform = d.Platform
		return out
	}
	panic("no such blob")
}

func TestImportRefusesOtherFiles(t *testing.T) {
	manifest := func(config string, layers ...string) []byte {
		data, err := json.Marshal([]dockerImage{{Config: config, RepoTags: []string{"x"}, Layers: layers}})
		must(err)
		return tarOf(file{name: "manifest.json", data: data})
	}
	for name, archive := range map[string][]byte{
		"empty":              {},
		"text":               []byte("hello"),
		"empty tar":          tarOf(),
		"some tar":           tarOf(file{name: "a", data: []byte("b")}),
		"no index":           tarOf(file{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}),
		"other version":      tarOf(file{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"2"}`)}, file{name: "index.json", data: []byte(`{"schemaVersion":2,"manifests":[]}`)}),
		"no images":          tarOf(file{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}, file{name: "index.json", data: []byte(`{"schemaVersion":2,"manifests":[]}`)}),
		"docker, no images":  tarOf(file{name: "manifest.json", data: []byte("[]")}),
		"docker, climbing":   manifest("../../etc/passwd"),
		"docker, host file":  manifest("/etc/passwd", "/etc/passwd"),
		"docker, no layer":   manifest("c.json", "l.tar"),
		"docker, deep json":  tarOf(file{name: "manifest.json", data: []byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))}),
		"docker, two jsons":  tarOf(file{name: "manifest.json", data: []byte("[] []")}),
		"docker, wrong name": tarOf(renamed(docker(func(b []byte) []byte { return b }, "x"))...),
		"xz":                 []byte("\xfd7zXZ\x00\x00\x00"),
	} {
		t.Run(name, func(t *testing.T) { refused(t, bytes.NewReader(archive), Limits{}, ErrInvalid) })
	}
}

// renamed gives the config a name that promises another digest.
func renamed(files []file) []file {
	for i, f := range files {
		if strings.HasSuffix(f.name, ".json") && f.name != "manifest.json" {
			files[i].name = strings.Repeat("0", 64) + ".json"
		}
	}
	return files
}

func TestImportStaysInTheDirectory(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLayout()
	l.add("x", l.image(picture{}))
	files := l.all()
	for i, f := range files {
		if strings.HasPrefix(f.name, "blobs/") {
			files[i] = file{name: f.name, link: secret}
			break
		}
	}
	s := newStore(t)
	_, err := s.ImportPath(t.Context(), directory(t, files), ImportOptions{})
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v", err)
	}
	checkEmpty(t, s)
}

// Case D3. Each archive asks for more than one limit grants.
func TestImportStopsAtLimits(t *testing.T) {
	small := Limits{Bytes: 1 << 20, JSON: 16 << 10, Files: 50, Layers: 5, Manifests: 6, Depth: 2}
	zeros := tarOf(file{name: "zeros", data: make([]byte, 4<<20)})
	for name, archive := range map[string]func(l *layout) []byte{
		"layer unpacks too far": func(l *layout) []byte {
			return l.add("x", l.image(picture{layers: [][]byte{zeros}, pack: gzipped, packType: ocispec.MediaTypeImageLayerGzip})).tar()
		},
		"layers together": func(l *layout) []byte {
			part := tarOf(file{name: "zeros", data: make([]byte, 600<<10)})
			return l.add("x", l.image(picture{layers: [][]byte{part, part}, pack: zstandard, packType: ocispec.MediaTypeImageLayerZstd})).tar()
		},
		"archive unpacks too far": func(*layout) []byte { return gzipped(zeros) },
		"too many entries": func(l *layout) []byte {
			return l.add("x", l.image(picture{})).tarWith(make([]file, 60))
		},
		"too many layers": func(l *layout) []byte {
			one := tarOf(file{name: "a"})
			return l.add("x", l.image(picture{layers: [][]byte{one, one, one, one, one, one}})).tar()
		},
		"config too large": func(l *layout) []byte {
			return l.add("x", l.image(picture{config: map[string]any{"Labels": map[string]string{"a": strings.Repeat("x", 20<<10)}}})).tar()
		},
		"index too large": func(l *layout) []byte {
			l.index.Annotations = map[string]string{"a": strings.Repeat("x", 20<<10)}
			return l.add("x", l.image(picture{})).tar()
		},
		"index in index": func(l *layout) []byte {
			d := l.image(picture{})
			for range 5 {
				index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{d}}
				index.SchemaVersion = 2
				d = l.json(index.MediaType, index)
			}
			return l.add("x", d).tar()
		},
		"too many manifests": func(l *layout) []byte {
			for i := range 8 {
				l.add("x", l.image(picture{config: map[string]any{"Cmd": []string{fmt.Sprint(i)}}}))
			}
			return l.tar()
		},
		"sparse file of an exabyte": func(*layout) []byte { return hugeEntry(1 << 60) },
	} {
		t.Run(name, func(t *testing.T) { refused(t, bytes.NewReader(archive(newLayout())), small, ErrLimit) })
	}
}

func (l *layout) tarWith(more []file) []byte {
	for i := range more {
		more[i].name = fmt.Sprintf("more/%d", i)
	}
	return tarOf(append(l.all(), more...)...)
}

// hugeEntry is a header that announces size bytes and brings none.
func hugeEntry(size int64) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(w.WriteHeader(&tar.Header{Name: "huge", Typeflag: tar.TypeReg, Size: size, Format: tar.FormatGNU}))
	return b.Bytes()
}

// endless is n bytes of zero.
func endless(n int64) io.Reader { return io.LimitReader(zeroes{}, n) }

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A gzip bomb of ten megabytes would unpack to ten gigabytes: the ratio stops
// it early, with default limits and in little memory.
func TestBombsStopAtTheRatio(t *testing.T) {
	const size = 10 << 30
	pack := func(out io.Writer, kind string) {
		var w io.WriteCloser = gzip.NewWriter(out)
		if kind == "zstd" {
			encoder, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest))
			must(err)
			w = encoder
		}
		header := hugeEntry(6 << 30)
		if _, err := w.Write(header); err == nil {
			_, _ = io.Copy(w, endless(size))
		}
		_ = w.Close()
	}
	for _, kind := range []string{"gzip", "zstd"} {
		t.Run(kind, func(t *testing.T) {
			r, w := io.Pipe()
			go func() { pack(w, kind); w.Close() }()
			defer r.Close()
			begin := time.Now()
			refused(t, r, Limits{}, ErrLimit)
			t.Log(time.Since(begin))
		})
	}
}

// A zstd frame may ask for a window of gigabytes with a few bytes.
func TestZstdWindowIsBounded(t *testing.T) {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00} // 2 GiB, one empty block
	refused(t, bytes.NewReader(append(frame, make([]byte, 64)...)), Limits{}, ErrLimit)
}
