package workspace

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func lines(changes []Change) []string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s %s %s", c.Kind, c.Type, c.Path))
	}
	return lines
}

func TestDiff(t *testing.T) {
	long := time.Unix(1_000_000_000, 0)
	for _, test := range []struct {
		name string
		do   func(ws string) error
		want []string
	}{
		{"nothing", func(string) error { return nil }, nil},
		{"read", func(ws string) error { _, err := os.ReadFile(ws + "/r.txt"); return err }, nil},
		{"same size overwrite", func(ws string) error {
			return os.WriteFile(ws+"/r.txt", []byte("BBBB"), 0o644)
		}, []string{"modified file r.txt"}},
		{"same size overwrite, times put back", func(ws string) error {
			if err := os.WriteFile(ws+"/r.txt", []byte("BBBB"), 0o644); err != nil {
				return err
			}
			return os.Chtimes(ws+"/r.txt", long, long)
		}, []string{"modified file r.txt"}},
		{"replaced by a rename", func(ws string) error {
			if err := os.WriteFile(ws+"/new", []byte("AAAA"), 0o644); err != nil {
				return err
			}
			return os.Rename(ws+"/new", ws+"/r.txt")
		}, []string{"modified file r.txt"}},
		{"renamed", func(ws string) error { return os.Rename(ws+"/r.txt", ws+"/s.txt") },
			[]string{"deleted file r.txt", "created file s.txt"}},
		{"renamed directory", func(ws string) error { return os.Rename(ws+"/dir", ws+"/moved") },
			[]string{"deleted dir dir", "deleted file dir/f", "created dir moved", "created file moved/f"}},
		{"deleted", func(ws string) error { return os.RemoveAll(ws + "/dir") },
			[]string{"deleted dir dir", "deleted file dir/f"}},
		{"file became directory", func(ws string) error {
			if err := os.Remove(ws + "/r.txt"); err != nil {
				return err
			}
			return os.Mkdir(ws+"/r.txt", 0o755)
		}, []string{"deleted file r.txt", "created dir r.txt"}},
		{"created in a directory", func(ws string) error { return os.WriteFile(ws+"/dir/g", nil, 0o644) },
			[]string{"created file dir/g"}},
		{"mode", func(ws string) error { return os.Chmod(ws+"/r.txt", 0o755) }, []string{"modified file r.txt"}},
		{"link elsewhere", func(ws string) error {
			if err := os.Remove(ws + "/link"); err != nil {
				return err
			}
			return os.Symlink("elsewhere", ws+"/link")
		}, []string{"modified symlink link"}},
		{"python cache", func(ws string) error {
			if err := os.MkdirAll(ws+"/dir/__pycache__", 0o755); err != nil {
				return err
			}
			return os.WriteFile(ws+"/dir/__pycache__/m.cpython-311.pyc", nil, 0o644)
		}, nil},
		{"hidden in a python cache", func(ws string) error {
			if err := os.Mkdir(ws+"/__pycache__", 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(ws+"/__pycache__/run.sh", nil, 0o644); err != nil {
				return err
			}
			if err := os.WriteFile(ws+"/__pycache__/m.pyc", nil, 0o755); err != nil {
				return err
			}
			return os.Chmod(ws+"/__pycache__/m.pyc", 0o755|os.ModeSetuid)
		}, []string{"created file __pycache__/m.pyc", "created file __pycache__/run.sh"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := newDir(t)
			ws := dir.Path()
			writeFile(t, ws+"/r.txt", "AAAA")
			check(t, os.Mkdir(ws+"/dir", 0o755))
			writeFile(t, ws+"/dir/f", "x")
			check(t, os.Symlink("target", ws+"/link"))
			before := scanDir(t, dir)
			check(t, test.do(ws))
			if diff := cmp.Diff(test.want, lines(Diff(before, scanDir(t, dir)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiffDescribesChanges(t *testing.T) {
	dir := newDir(t)
	ws := dir.Path()
	before := scanDir(t, dir)
	writeFile(t, ws+"/chart.PNG", "12345")
	writeFile(t, ws+"/\xff.csv", "1")
	check(t, os.Symlink("../up", ws+"/out"))
	check(t, os.Symlink("chart.PNG", ws+"/in"))
	check(t, os.Mkdir(ws+"/Makefile", 0o755))
	got := Diff(before, scanDir(t, dir))
	for i := range got {
		got[i].Mode = 0
	}
	want := []Change{
		{Path: "Makefile", Kind: Created, Type: "dir", Risky: true, Size: got[0].Size},
		{Path: "chart.PNG", Kind: Created, Type: "file", Size: 5, MIME: "image/png"},
		{Path: "in", Kind: Created, Type: "symlink", Size: 9, Target: "chart.PNG"},
		{Path: "out", Kind: Created, Type: "symlink", Size: 5, Target: "../up", Risky: true},
		{Path: "\uFFFD.csv", Raw: []byte("\xff.csv"), Kind: Created, Type: "file", Size: 1, MIME: "text/csv"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDiffDoesNotGuessBeyondLimits(t *testing.T) {
	dir := newDir(t)
	for i := range 20 {
		check(t, os.MkdirAll(fmt.Sprintf("%s/d%02d/e/f", dir.Path(), i), 0o755))
	}
	full := scanDir(t, dir)
	for _, limits := range []ScanLimits{{Entries: 7}, {Entries: 25}, {Depth: 1}, {Depth: 2}, {Bytes: 100}} {
		part, err := dir.Scan(t.Context(), limits)
		check(t, err)
		if !part.Truncated {
			t.Errorf("%+v: not truncated", limits)
		}
		if got := Diff(part, full); got != nil {
			t.Errorf("%+v before: %q", limits, lines(got))
		}
		if got := Diff(full, part); got != nil {
			t.Errorf("%+v after: %q", limits, lines(got))
		}
	}
	part, err := dir.Scan(t.Context(), ScanLimits{Depth: 1})
	check(t, err)
	writeFile(t, dir.Path()+"/new", "x")
	if got := lines(Diff(part, scanDir(t, dir))); len(got) != 1 || got[0] != "created file new" {
		t.Errorf("got %q", got)
	}
}

// TestDiffExplainsEverything: applied to the names before, the changes give the
// names after.
func TestDiffExplainsEverything(t *testing.T) {
	entry := rapid.Custom(func(t *rapid.T) Entry {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a.b", "__pycache__", "x.pyc"}), 1, 3).Draw(t, "parts")
		mode := rapid.SampledFrom([]uint32{0o100644, 0o040755, 0o120777}).Draw(t, "mode")
		return Entry{Path: strings.Join(parts, "/"), Mode: mode, Size: rapid.Int64Range(0, 1).Draw(t, "size")}
	})
	rapid.Check(t, func(t *rapid.T) {
		listing := func(label string) (Listing, map[string]Entry) {
			byPath := map[string]Entry{}
			for _, e := range rapid.SliceOf(entry).Draw(t, label) {
				byPath[e.Path] = e
			}
			return Listing{Entries: sorted(byPath)}, byPath
		}
		before, model := listing("before")
		after, want := listing("after")
		for _, change := range diffAll(before, after) {
			switch change.Kind {
			case Deleted:
				if _, ok := model[change.Path]; !ok {
					t.Fatalf("%s was not there", change.Path)
				}
				delete(model, change.Path)
			case Created:
				if _, ok := model[change.Path]; ok {
					t.Fatalf("%s was there already", change.Path)
				}
				model[change.Path] = want[change.Path]
			case Modified:
				if model[change.Path] == want[change.Path] {
					t.Fatalf("%s is the same", change.Path)
				}
				model[change.Path] = want[change.Path]
			}
		}
		for path, e := range want {
			if typeName(e.Mode) == "dir" {
				e.Size = model[path].Size // a directory is never modified
			}
			if model[path] != e {
				t.Fatalf("%s: %+v, want %+v", path, model[path], e)
			}
		}
		if len(model) != len(want) {
			t.Fatalf("%d names, want %d", len(model), len(want))
		}
	})
}
