package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

// mayImport are the arrows between the project's parts: who may import whom.
var mayImport = map[string][]string{
	"cmd":     {"agent", "runtime", "policy", "images"},
	"agent":   {"runtime", "policy", "images"},
	"runtime": {"policy"},
	"images":  {},
	"policy":  {},
}

// Every import of ours follows an arrow, and every package has a page.
func TestLayout(t *testing.T) {
	pages, packages := map[string]bool{}, map[string]bool{}
	root := "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return errOrSkip(err, d)
		}
		rel, err := filepath.Rel(root, path)
		part := strings.SplitN(rel, "/", 2)[0]
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		if mayImport[part] == nil {
			t.Errorf("%s: no arrows are known for %s", rel, part)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(path, "_test.go") {
			dir := filepath.Dir(rel)
			packages[dir] = true
			pages[dir] = pages[dir] || file.Doc != nil
		}
		for _, spec := range file.Imports {
			name, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "gaol/")
			target := strings.SplitN(name, "/", 2)[0]
			if ours && target != part && !slices.Contains(mayImport[part], target) {
				t.Errorf("%s imports %s: %s may not import %s", rel, spec.Path.Value, part, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range packages {
		if !pages[dir] {
			t.Errorf("package %s has no comment", dir)
		}
	}
	if len(packages) < 5 {
		t.Errorf("saw only %d packages", len(packages))
	}
}

func errOrSkip(err error, d fs.DirEntry) error {
	if err == nil && d.IsDir() {
		return filepath.SkipDir
	}
	return err
}

// The config.toml of the repository says what holds without one.
func TestConfigFileIsTheDefault(t *testing.T) {
	data, err := policy.ReadTrusted("../../config.toml")
	if err != nil {
		t.Fatal(err)
	}
	var got config
	if err := policy.DecodeStrict("config.toml", data, &got); err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	got.Document = policy.Document{} // package policy tests its tables
	if diff := cmp.Diff(*want, got, cmp.AllowUnexported(config{})); diff != "" {
		t.Errorf("config.toml differs from the default (-default +file):\n%s", diff)
	}
}
