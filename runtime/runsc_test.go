package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The constants are what the build of runsc is checked against.
func TestRunscPin(t *testing.T) {
	sums, err := os.ReadFile("gvisor/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	want := gvisorModule + " " + RunscVersion + " " + runscSum + "\n"
	if !strings.Contains(string(sums), want) {
		t.Errorf("go.sum does not have the line %q", want)
	}
}

// E6: a runsc that is missing, is something else, or could have been changed by
// others is refused.
func TestCheckRunscRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	another, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"missing":              filepath.Join(dir, "none"),
		"a directory":          dir,
		"a script":             write("script", []byte("#!/bin/sh\nexec runsc \"$@\"\n"), 0o755),
		"not executable":       write("plain", another, 0o644),
		"writable by others":   write("open", another, 0o777),
		"another Go program":   write("other", another, 0o755),
		"empty":                write("empty", nil, 0o755),
		"cut off in its midst": write("short", another[:len(another)/100], 0o755),
	} {
		if err := CheckRunsc(path); !errors.Is(err, ErrRunsc) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
