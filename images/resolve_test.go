package images

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func add(t testing.TB, s *Store, name string, p picture) Image {
	t.Helper()
	all, err := s.Import(t.Context(), bytes.NewReader(simple(name, p)), ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestOpenChecksItsConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no root":        {},
		"relative":       {Root: "store"},
		"relative other": {Root: "/store", System: "x"},
		"negative limit": {Root: "/store", Limits: Limits{Layers: -1}},
		"negative size":  {Root: "/store", Limits: Limits{Bytes: -1}},
	} {
		if _, err := Open(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestResolveSpellings(t *testing.T) {
	s := newStore(t)
	image := add(t, s, "team/app", picture{})
	for _, ref := range []string{"team/app", "team/app:latest", "docker.io/team/app", "team/app@" + image.Digest.String(), "team/app:latest@" + image.Digest.String()} {
		r, err := s.Resolve(t.Context(), ref)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		r.Close()
	}
	for ref, want := range map[string]error{
		"team/app:2": ErrNotFound, "app": ErrNotFound, "team/app@sha256:" + zeroHex: ErrNotFound,
		"": ErrReference, "Team": ErrReference, "../x": ErrReference, "a@sha256:..": ErrReference, "a b": ErrReference,
	} {
		if r, err := s.Resolve(t.Context(), ref); !errors.Is(err, want) {
			t.Errorf("%q: %v, %v", ref, r, err)
		}
	}
}

const zeroHex = "0000000000000000000000000000000000000000000000000000000000000000"

func TestNotFoundNamesWhatIsThere(t *testing.T) {
	s := newStore(t)
	var missing *NotFoundError
	if _, err := s.Resolve(t.Context(), "python"); !errors.As(err, &missing) {
		t.Fatal(err)
	}
	if d := cmp.Diff(NotFoundError{Reference: "python", Command: "gaol images build python"}, *missing); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(s.own.root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made the store: %v", err)
	}
	add(t, s, "app:1", picture{})
	if _, err := s.Resolve(t.Context(), "other"); !errors.As(err, &missing) {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"app:1"}, missing.Present); d != "" {
		t.Error(d)
	}
}

// The command is one that works once FILE is filled in.
func TestNotFoundNamesTheCommand(t *testing.T) {
	s := newStore(t)
	for ref, want := range map[string]string{
		"python": "gaol images build python", "python:latest": "gaol images build python", "shell": "gaol images build shell",
		"docker.io/library/python": "gaol images build python",
		"python:3.13":              "gaol images import FILE --as python:3.13", "pythonic": "gaol images import FILE --as pythonic",
		"team/app:2": "gaol images import FILE --as team/app:2", "team/python": "gaol images import FILE --as team/python",
		"app@sha256:" + zeroHex: "gaol images import FILE --as app",
	} {
		var missing *NotFoundError
		if _, err := s.Resolve(t.Context(), ref); !errors.As(err, &missing) {
			t.Errorf("%s: %v", ref, err)
		} else if missing.Command != want {
			t.Errorf("%s: %q, want %q", ref, missing.Command, want)
		}
	}
}

func TestSystemStoreIsReadOnly(t *testing.T) {
	shared := newStore(t)
	system := add(t, shared, "app", picture{})
	add(t, shared, "base", picture{})
	s := openStore(t, Config{Root: filepath.Join(t.TempDir(), "own"), System: shared.own.root})
	own := add(t, s, "app", picture{config: map[string]any{"Cmd": []string{"/own"}}})
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, image := range all {
		got = append(got, image.Reference+map[bool]string{true: " system"}[image.System])
	}
	if d := cmp.Diff([]string{"app", "app system", "base system"}, got); d != "" {
		t.Error(d)
	}
	for ref, want := range map[string]string{"app": own.Digest.String(), "app@" + system.Digest.String(): system.Digest.String()} {
		r, err := s.Resolve(t.Context(), ref)
		if err != nil || r.Digest.String() != want {
			t.Errorf("%s: %+v, %v", ref, r, err)
			continue
		}
		r.Close()
	}
	if err := s.Remove(t.Context(), "base"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("remove: %v", err)
	}
	if err := s.Remove(t.Context(), "app"); err != nil {
		t.Errorf("remove own: %v", err)
	}
	if _, err := s.Prune(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := s.Resolve(t.Context(), "app"); err != nil || r.Digest != system.Digest {
		t.Errorf("%+v, %v", r, err)
	} else {
		r.Close()
	}
	if details, err := s.Inspect(t.Context(), "base"); err != nil || !details.System {
		t.Errorf("%+v, %v", details, err)
	}
}

// The system store must be readable by the ids that sandboxes run as, under
// any umask; a user's own store by nobody else.
func TestModes(t *testing.T) {
	before := unix.Umask(0o077)
	defer unix.Umask(before)
	s := newStore(t)
	add(t, s, "app", picture{})
	r, err := s.Resolve(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	directories := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		directories = 0o755
	}
	for path, want := range map[string]os.FileMode{
		s.own.root: directories, s.own.rootfses(): directories, s.own.records(): directories,
		r.Path: 0o644, filepath.Join(s.own.records(), recordName("app")): 0o644,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// Case H10: what a sandbox runs from stays, whatever happens to its name.
func TestRemoveKeepsARunningRootfs(t *testing.T) {
	s := newStore(t)
	add(t, s, "app", picture{})
	r, err := s.Resolve(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(t.Context(), "app"); !errors.Is(err, ErrNotFound) {
		t.Errorf("resolved a removed image: %v", err)
	}
	if _, err := os.Stat(r.Path); err != nil {
		t.Errorf("rootfs in use is gone: %v", err)
	}
	pruned, err := s.Prune(t.Context())
	if err != nil || pruned.InUse != 1 || pruned.Rootfses != 0 {
		t.Errorf("prune in use: %+v, %v", pruned, err)
	}
	r.Close()
	pruned, err = s.Prune(t.Context())
	if err != nil || pruned.Rootfses != 1 || pruned.Bytes == 0 {
		t.Errorf("prune after: %+v, %v", pruned, err)
	}
	checkEmpty(t, s)
	if err := s.Remove(t.Context(), "app"); !errors.Is(err, ErrNotFound) {
		t.Errorf("remove again: %v", err)
	}
}

func TestImagesShareLayersAndRootfs(t *testing.T) {
	s := newStore(t)
	one := add(t, s, "one", picture{})
	two := add(t, s, "two", picture{config: map[string]any{"Cmd": []string{"/two"}}})
	if one.Digest == two.Digest || one.RootfsDigest != two.RootfsDigest {
		t.Errorf("%+v %+v", one, two)
	}
	if files, err := filepath.Glob(filepath.Join(s.own.rootfses(), "*.erofs")); err != nil || len(files) != 1 {
		t.Errorf("rootfs files: %v, %v", files, err)
	}
	if err := s.Remove(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("verify: %v %v", problems, err)
	}
	r, err := s.Resolve(t.Context(), "two")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if d := cmp.Diff([]string{"/two"}, r.Config.Cmd); d != "" {
		t.Error(d)
	}
	// A new image under an old name replaces it.
	three := add(t, s, "two", picture{layers: [][]byte{tarOf(file{name: "three"})}})
	if again, err := s.Inspect(t.Context(), "two"); err != nil || again.Digest != three.Digest || len(again.Layers) != 1 {
		t.Errorf("%+v, %v", again, err)
	}
}
