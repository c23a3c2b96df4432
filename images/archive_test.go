package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/klauspost/compress/zstd"
)

// file is one entry of a tar stream under construction.
type file struct {
	name string
	data []byte
	link string // symbolic
	mode int64
}

func tarOf(files ...file) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: tar.TypeReg, Size: int64(len(f.data)), Mode: 0o644}
		if f.mode != 0 {
			h.Mode = f.mode
		}
		if f.link != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.link, 0
		}
		must(w.WriteHeader(h))
		_, err := w.Write(f.data)
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

// must is for what cannot fail in memory.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	must(err)
	must(w.Close())
	return b.Bytes()
}

func zstandard(data []byte) []byte {
	w, err := zstd.NewWriter(nil)
	must(err)
	return w.EncodeAll(data, nil)
}

// layout is an OCI layout under construction.
type layout struct {
	files []file
	index ocispec.Index
}

func newLayout() *layout {
	l := &layout{}
	l.index.SchemaVersion = 2
	l.index.MediaType = ocispec.MediaTypeImageIndex
	return l
}

// blob adds data under its digest.
func (l *layout) blob(mediaType string, data []byte) ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	l.files = append(l.files, file{name: "blobs/sha256/" + d.Digest.Encoded(), data: data})
	return d
}

func (l *layout) json(mediaType string, v any) ocispec.Descriptor {
	data, err := json.Marshal(v)
	must(err)
	return l.blob(mediaType, data)
}

// picture is an image under construction. Zero values are what most tests
// want: one small layer, linux/amd64 or whatever the host is.
type picture struct {
	platform ocispec.Platform
	config   map[string]any
	layers   [][]byte // plain tar streams
	pack     func([]byte) []byte
	packType string
	// spoil changes config and manifest before they are stored.
	spoil func(config map[string]any, m *ocispec.Manifest)
}

func hostPlatform() ocispec.Platform {
	p, err := parsePlatform("")
	must(err)
	return p
}

// image stores the picture's blobs and gives its manifest's descriptor.
func (l *layout) image(p picture) ocispec.Descriptor {
	if p.platform.OS == "" {
		p.platform = hostPlatform()
	}
	if p.layers == nil {
		p.layers = [][]byte{tarOf(file{name: "hello", data: []byte("hello\n")})}
	}
	if p.pack == nil {
		p.pack, p.packType = func(b []byte) []byte { return b }, ocispec.MediaTypeImageLayer
	}
	var diffIDs []digest.Digest
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest}
	m.SchemaVersion = 2
	for _, data := range p.layers {
		diffIDs = append(diffIDs, digest.FromBytes(data))
		m.Layers = append(m.Layers, l.blob(p.packType, p.pack(data)))
	}
	config := map[string]any{
		"os": p.platform.OS, "architecture": p.platform.Architecture, "config": p.config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffIDs},
	}
	if p.spoil != nil {
		p.spoil(config, &m)
	}
	m.Config = l.json(ocispec.MediaTypeImageConfig, config)
	desc := l.json(m.MediaType, m)
	desc.Platform = &p.platform
	return desc
}

// add lists a descriptor in index.json under a name, if there is one.
func (l *layout) add(name string, desc ocispec.Descriptor) *layout {
	if name != "" {
		desc.Annotations = map[string]string{ocispec.AnnotationRefName: name}
	}
	l.index.Manifests = append(l.index.Manifests, desc)
	return l
}

// all gives the files of the layout.
func (l *layout) all() []file {
	index, err := json.Marshal(l.index)
	must(err)
	return append([]file{{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {name: "index.json", data: index}}, l.files...)
}

func (l *layout) tar() []byte { return tarOf(l.all()...) }

// directory writes the files below a new directory.
func directory(t *testing.T, files []file) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.link != "" {
			err = os.Symlink(f.link, path)
		} else {
			err = os.WriteFile(path, f.data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// simple is an archive of one image called name.
func simple(name string, p picture) []byte {
	l := newLayout()
	return l.add(name, l.image(p)).tar()
}
