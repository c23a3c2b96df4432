package images

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A canceled build ends its processes and takes its tree along.
func TestCanceledBuildLeavesNothing(t *testing.T) {
	needBuilder(t)
	recipe, err := LoadRecipe("shell")
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	temp := t.TempDir()
	for dir := temp; dir != "/"; dir = filepath.Dir(dir) {
		if filepath.Dir(dir) != "/" { // never /tmp itself
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := 0
	_, err = s.Build(ctx, BuildOptions{Recipe: recipe, TempDir: temp, Progress: func(p Progress) {
		if seen++; strings.HasPrefix(p.Item, "downloading") {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if seen == 0 {
		t.Error("no progress was told")
	}
	checkEmpty(t, s)
	for pid, where := range processesIn(t, temp, s.own.root) {
		t.Errorf("process %s still uses %s", pid, where)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// processesIn finds processes whose environment or command names a directory.
func processesIn(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	self := filepath.Base(func() string { link, _ := os.Readlink("/proc/self"); return link }())
	for _, e := range entries {
		if strings.Trim(e.Name(), "0123456789") != "" || e.Name() == self {
			continue
		}
		for _, part := range []string{"cmdline", "environ"} {
			data, _ := os.ReadFile(filepath.Join("/proc", e.Name(), part)) // gone, or not ours
			for _, dir := range dirs {
				if strings.Contains(string(data), dir) {
					found[e.Name()] = dir
				}
			}
		}
	}
	return found
}
