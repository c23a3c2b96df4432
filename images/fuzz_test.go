package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// classified expects that whatever outside bytes do, the error says whose
// fault it is.
func classified(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrLimit) && !errors.Is(err, ErrReference) && !errors.Is(err, ErrPlatform) {
		t.Errorf("error without a class: %v", err)
	}
}

func FuzzImageConfig(f *testing.F) {
	f.Add([]byte(`{"os":"linux","architecture":"amd64","config":{"User":"1:2","Env":["PATH=/bin","LD_PRELOAD=x"],"WorkingDir":"/a"},"rootfs":{"type":"layers","diff_ids":["sha256:`+zeroHex+`"]}}`), []byte("a:x:1:2:::\n"))
	f.Add([]byte(`{"config":{"User":"4294967296"},"rootfs":{"type":"layers"}}`), []byte("4294967296:x:0:0\n"))
	f.Add([]byte(`{"config":{"Env":["PATH=."],"Labels":{"a":"b"},"Volumes":{"/x":{}}},"rootfs":{"type":"layers"}}`), []byte(nil))
	f.Fuzz(func(t *testing.T, data, passwd []byte) {
		file, err := parseImageFile(data, 1)
		classified(t, err)
		if err != nil {
			return
		}
		c, err := file.imageConfig(passwd, passwd)
		classified(t, err)
		if err != nil {
			return
		}
		if c.UID == 0 || c.UID == 1<<32-1 || c.GID == 1<<32-1 {
			t.Errorf("runs as %d:%d", c.UID, c.GID)
		}
		if !path.IsAbs(c.WorkingDir) || path.Clean(c.WorkingDir) != c.WorkingDir {
			t.Errorf("working directory %q", c.WorkingDir)
		}
		for _, pair := range c.Env {
			name, value, _ := strings.Cut(pair, "=")
			if !envAllowed(name) || strings.ContainsAny(value, "\x00\n") {
				t.Errorf("environment %q", pair)
			}
		}
		if !slices.ContainsFunc(c.Env, func(s string) bool { return strings.HasPrefix(s, "PATH=/") }) {
			t.Errorf("no PATH in %q", c.Env)
		}
	})
}

func FuzzDockerManifest(f *testing.F) {
	f.Add([]byte(`[{"Config":"c.json","RepoTags":["x:1"],"Layers":["l.tar"]}]`))
	f.Add([]byte(`[{"Config":"../../etc/passwd","Layers":["/etc/passwd"]}]`))
	f.Add([]byte(`[{"Config":"a","config":"b"}]`))
	limits, err := Limits{}.orDefault()
	must(err)
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parseDockerManifest(data, limits)
		classified(t, err)
		a := archived{blobs: map[string]ocispec.Descriptor{}}
		for _, image := range all {
			// No name leads out of the archive, which is empty.
			if _, err := a.find(image.Config); !errors.Is(err, errAbsent) {
				t.Errorf("found %q: %v", image.Config, err)
			}
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"mediaType":"`+ocispec.MediaTypeImageIndex+`","manifests":[]}`), true)
	f.Add([]byte(`{"schemaVersion":2,"config":{},"layers":[]}`), false)
	f.Add([]byte(`{"schemaVersion":2,"config":{},"layers":[],"manifests":[]}`), false)
	f.Fuzz(func(t *testing.T, data []byte, index bool) {
		mediaType := ocispec.MediaTypeImageManifest
		if index {
			mediaType = ocispec.MediaTypeImageIndex
		}
		d, err := parseDocument(data, mediaType)
		classified(t, err)
		if err != nil {
			return
		}
		if (d.Manifests != nil && !index) || (d.Config != nil && index) {
			t.Errorf("both kinds at once: %s", data)
		}
		var plain map[string]any
		if json.Unmarshal(data, &plain) != nil {
			t.Errorf("accepted what the standard library refuses: %q", data)
		}
	})
}

func FuzzRecipe(f *testing.F) {
	f.Add([]byte(smallRecipe))
	f.Add([]byte(smallRecipe + "prune = [\"/usr/**/x*\"]\n[env]\nLANG=\"C\"\n[[links]]\ndirectory=\"/bin\"\nto=\"x\"\nnames=[\"y\"]\n"))
	f.Add([]byte("a.b.c = 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRecipe("fuzz", data)
		classified(t, err)
		if err != nil {
			return
		}
		for _, word := range append(slices.Clone(r.Packages), r.Suite, r.Name) {
			if strings.HasPrefix(word, "-") || strings.ContainsAny(word, " ,/\n") {
				t.Errorf("reaches the command line: %q", word)
			}
		}
	})
}

func FuzzReference(f *testing.F) {
	for _, seed := range []string{"python", "a/b:1", "host:5000/x@sha256:" + zeroHex, "../x", "A", "docker.io/library/x:latest"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		name, _, err := parseReference(ref)
		classified(t, err)
		if err != nil {
			return
		}
		again, _, err := parseReference(name)
		if err != nil || again != name {
			t.Errorf("%q reads %q, which reads %q, %v", ref, name, again, err)
		}
	})
}

func FuzzImport(f *testing.F) {
	f.Add(simple("x", picture{}))
	f.Add(gzipped(simple("x", picture{})))
	f.Add(tarOf(docker(zstandard, "x")...))
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		s := openStore(t, Config{Root: t.TempDir() + "/store", Limits: Limits{Bytes: 1 << 20}})
		_, err := s.Import(t.Context(), bytes.NewReader(archive), ImportOptions{Platform: "linux/amd64"})
		classified(t, err)
		if left := leftovers(t, s); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}
