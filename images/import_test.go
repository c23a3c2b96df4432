package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// docker is what "docker save" of one image looks like.
func docker(pack func([]byte) []byte, tags ...string) []file {
	layer := tarOf(file{name: "hello", data: []byte("hello\n")})
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": hostPlatform().Architecture, "config": map[string]any{"Cmd": []string{"/hello"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(layer), digestOf(layer)}},
	})
	must(err)
	name := strings.TrimPrefix(digestOf(config), "sha256:") + ".json"
	manifest, err := json.Marshal([]dockerImage{{Config: name, RepoTags: tags, Layers: []string{"one/layer.tar", "two/layer.tar"}}})
	must(err)
	return []file{
		{name: "one/VERSION", data: []byte("1.0")}, {name: "one/json", data: []byte("{}")},
		{name: "one/layer.tar", data: pack(layer)}, {name: "two/layer.tar", link: "../one/layer.tar"},
		{name: name, data: config}, {name: "manifest.json", data: manifest},
		{name: "repositories", data: []byte("{}")},
	}
}

func TestImportReadsEveryFormat(t *testing.T) {
	raw := func(b []byte) []byte { return b }
	oci := newLayout()
	oci.add("demo", oci.image(picture{}))
	gz, zs := newLayout(), newLayout()
	gz.add("demo", gz.image(picture{pack: gzipped, packType: ocispec.MediaTypeImageLayerGzip}))
	zs.add("demo", zs.image(picture{pack: zstandard, packType: ocispec.MediaTypeImageLayerZstd}))
	both := append(docker(raw, "other:1"), oci.all()...)
	for name, archive := range map[string][]byte{
		"oci":               oci.tar(),
		"oci in gzip":       gzipped(oci.tar()),
		"oci in zstd":       zstandard(oci.tar()),
		"oci, gzip layer":   gz.tar(),
		"oci, zstd layer":   zs.tar(),
		"docker":            tarOf(docker(raw, "demo:latest")...),
		"docker in gzip":    gzipped(tarOf(docker(raw, "docker.io/library/demo")...)),
		"docker, gzip":      tarOf(docker(gzipped, "demo")...),
		"docker, zstd":      tarOf(docker(zstandard, "demo")...),
		"docker and oci":    tarOf(both...),
		"names with ./":     tarOf(prefixed(oci.all(), "./")...),
		"blobs before json": tarOf(append(oci.files, oci.all()[:2]...)...),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			all, err := s.Import(t.Context(), bytes.NewReader(archive), ImportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			checkDemo(t, s, all)
		})
	}
	for name, dir := range map[string]string{
		"oci directory":    directory(t, oci.all()),
		"docker directory": directory(t, docker(raw, "demo")),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			all, err := s.ImportPath(t.Context(), dir, ImportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			checkDemo(t, s, all)
		})
	}
}

func prefixed(files []file, prefix string) []file {
	var out []file
	for _, f := range files {
		f.name = prefix + f.name
		out = append(out, f)
	}
	return out
}

// checkDemo expects the image "demo", and nothing else, ready to run.
func checkDemo(t *testing.T, s *Store, all []Image) {
	t.Helper()
	if len(all) != 1 || all[0].Reference != "demo" {
		t.Fatalf("imported %+v", all)
	}
	rootfs, err := s.Resolve(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer rootfs.Close()
	if rootfs.Digest != all[0].Digest || rootfs.Size != all[0].RootfsSize || rootfs.File() == nil {
		t.Errorf("resolved %+v, imported %+v", rootfs, all[0])
	}
	if data, err := os.ReadFile(rootfs.Path); err != nil || !bytes.Contains(data, []byte("hello\n")) {
		t.Errorf("rootfs does not hold the file: %v", err)
	}
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("verify: %v %v", problems, err)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestImportNames(t *testing.T) {
	one := newLayout()
	one.add("registry.example/team/app:2", one.image(picture{}))
	two := newLayout()
	two.add("a", two.image(picture{})).add("b:1", two.image(picture{config: map[string]any{"Cmd": []string{"/b"}}}))
	anonymous := newLayout()
	anonymous.add("", anonymous.image(picture{}))
	for _, tt := range []struct {
		name    string
		archive []byte
		as      string
		want    []string
		err     error
	}{
		{"its own", one.tar(), "", []string{"registry.example/team/app:2"}, nil},
		{"a new one", one.tar(), "mine", []string{"mine"}, nil},
		{"two", two.tar(), "", []string{"a", "b:1"}, nil},
		{"two under one name", two.tar(), "c", nil, ErrReference},
		{"none", anonymous.tar(), "", nil, ErrReference},
		{"none, given", anonymous.tar(), "given:1", []string{"given:1"}, nil},
		{"climbing", simple("../../x", picture{}), "", nil, ErrReference},
		{"climbing inside", simple("a/../b", picture{}), "", nil, ErrReference},
		{"upper case", one.tar(), "Mine", nil, ErrReference},
		{"a digest", one.tar(), "mine@sha256:" + strings.Repeat("a", 64), nil, ErrReference},
		{"docker, two tags", tarOf(docker(func(b []byte) []byte { return b }, "x:1", "x:2")...), "", []string{"x:1", "x:2"}, nil},
		{"docker, two tags, one name", tarOf(docker(func(b []byte) []byte { return b }, "x:1", "x:2")...), "y", []string{"y"}, nil},
		{"docker, no tag", tarOf(docker(func(b []byte) []byte { return b })...), "", nil, ErrReference},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			all, err := s.Import(t.Context(), bytes.NewReader(tt.archive), ImportOptions{Reference: tt.as})
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			var got []string
			for _, image := range all {
				got = append(got, image.Reference)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Case H1.
func TestImportChoosesThePlatform(t *testing.T) {
	amd := ocispec.Platform{OS: "linux", Architecture: "amd64"}
	arm := ocispec.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}
	l := newLayout()
	amdDesc := l.image(picture{platform: amd})
	held := len(l.files)
	armDesc := l.image(picture{platform: arm, config: map[string]any{"Cmd": []string{"/arm"}}})
	attestation := l.image(picture{platform: ocispec.Platform{OS: "unknown", Architecture: "unknown"}})
	l.files = l.files[:held] // the others' blobs are not in the archive
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{attestation, armDesc, amdDesc}}
	index.SchemaVersion = 2
	l.add("multi", l.json(ocispec.MediaTypeImageIndex, index))

	s := newStore(t)
	all, err := s.Import(t.Context(), bytes.NewReader(l.tar()), ImportOptions{Platform: "linux/amd64"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"linux/arm64"}, trimVariant(all[0].Absent)); d != "" || all[0].Digest != amdDesc.Digest || all[0].Platform != "linux/amd64" {
		t.Errorf("imported %+v: %s", all[0], d)
	}
	other := newStore(t)
	_, err = other.Import(t.Context(), bytes.NewReader(l.tar()), ImportOptions{Platform: "linux/arm64"})
	if !errors.Is(err, ErrPlatform) {
		t.Errorf("other platform: %v", err)
	}
	checkEmpty(t, other)
}

func trimVariant(platforms []string) []string {
	var out []string
	for _, p := range platforms {
		out = append(out, strings.TrimSuffix(p, "/v8"))
	}
	return out
}

// checkEmpty expects that a refused import left no blob, no rootfs, no name.
func checkEmpty(t *testing.T, s *Store) {
	t.Helper()
	if all, err := s.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("listed %v, %v", all, err)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, dir := range []string{s.own.content(), s.own.rootfses(), s.own.records()} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				t.Errorf("left behind: %s", path)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}
