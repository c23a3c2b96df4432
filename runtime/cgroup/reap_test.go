package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReap(t *testing.T) {
	for version, name := range versions {
		t.Run(name, func(t *testing.T) {
			h, f := found(t, version, nil)
			before := f.left(t)
			dead, err := h.New("gaol-dead", small)
			if err != nil {
				t.Fatal(err)
			}
			nested := filepath.Join(dead.paths[0], "inner", "most")
			if err := errors.Join(f.mkdir(filepath.Dir(nested)), f.mkdir(nested)); err != nil {
				t.Fatal(err)
			}
			if _, err := h.New("gaol-alive", small); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time there is nothing left to do
				if err := reap(t.Context(), f, f.proc, dead.paths); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range dead.paths {
				if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is left: %v", dir, err)
				}
			}
			for _, dir := range h.Paths("gaol-alive") {
				if _, err := os.Stat(dir); err != nil {
					t.Errorf("the other group: %v", err)
				}
			}
			if err := reap(t.Context(), f, f.proc, h.Paths("gaol-alive")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, f.left(t)); diff != "" {
				t.Errorf("groups (-before +after):\n%s", diff)
			}
		})
	}
}

// A state record may be damaged or forged: what it names is taken away only
// when it can be nothing but a group of ours.
func TestReapRefuses(t *testing.T) {
	_, f := found(t, 2, nil)
	outside := t.TempDir()
	foreign := []string{
		filepath.Join(f.dir, "d.scope"),
		filepath.Join(f.dir, "d.scope", lair),
		filepath.Join(f.dir, "d.scope", "other"),
		filepath.Join(f.dir, "d.scope", "gaol-direct"),
		filepath.Join(f.dir, "gaol", "other"),
		filepath.Join(outside, "gaol", "gaol-a"),
		f.dir + "/d.scope/../d.scope/gaol/gaol-a",
		"gaol/gaol-a",
		"/",
		"",
	}
	for _, dir := range foreign {
		if filepath.IsAbs(dir) {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := reap(t.Context(), f, f.proc, []string{dir}); !errors.Is(err, ErrForeign) {
			t.Errorf("reap %q: %v", dir, err)
		}
		if _, err := os.Stat(dir); filepath.IsAbs(dir) && err != nil {
			t.Errorf("%q was touched: %v", dir, err)
		}
	}
	// One that is refused does not keep the others from their end.
	mine := filepath.Join(f.dir, "e.scope", "gaol", "gaol-b")
	if err := errors.Join(f.mkdir(filepath.Dir(filepath.Dir(mine))), f.mkdir(filepath.Dir(mine)), f.mkdir(mine)); err != nil {
		t.Fatal(err)
	}
	if err := reap(t.Context(), f, f.proc, []string{foreign[0], mine}); !errors.Is(err, ErrForeign) {
		t.Errorf("reap: %v", err)
	}
	if _, err := os.Stat(mine); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", mine, err)
	}
}
