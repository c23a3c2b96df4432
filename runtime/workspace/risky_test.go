package workspace

import (
	"maps"
	"slices"
	"testing"
)

func sorted(byPath map[string]Entry) []Entry {
	var entries []Entry
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		entries = append(entries, byPath[path])
	}
	return entries
}

func TestIsRisky(t *testing.T) {
	for path, want := range map[string]bool{
		".git/config": true, ".git/hooks/pre-commit": true, "vendor/x/.git/hooks": true, ".GIT/Config": true,
		".git": true, ".git/objects/ab/cdef": false, ".git/HEAD": false, ".git/info/attributes": true,
		".gitattributes": true, ".envrc": true, ".vscode/tasks.json": true, ".vscode": true, ".idea/x.xml": true,
		"Makefile": true, "sub/Makefile": true, "conftest.py": true, "sitecustomize.py": true,
		"pyproject.toml": true, "package.json": true, ".npmrc": true, ".mcp.json": true, "CLAUDE.md": true,
		"AGENTS.md": true, "x.pth": true, ".bashrc": true, "README.md": false, "main.py": false,
		"data/config": false, "gitconfig": false, "chart.png": false, "path": false,
	} {
		if isRisky(path) != want {
			t.Errorf("isRisky(%s) = %v", path, !want)
		}
	}
}

func TestLeadsOut(t *testing.T) {
	for _, test := range []struct {
		name, target string
		want         bool
	}{
		{"a", "", false}, {"a", "b", false}, {"a", "/etc/passwd", true}, {"a", "..", true}, {"a", "../x", true},
		{"d/a", "..", false}, {"d/a", "../b", false}, {"d/a", "../../b", true}, {"a", "./b/../c", false}, {"a", "..x", false},
	} {
		if leadsOut(test.name, test.target) != test.want {
			t.Errorf("leadsOut(%s, %s) = %v", test.name, test.target, !test.want)
		}
	}
}
