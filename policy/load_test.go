package policy_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/policy"
)

func writeFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // past the umask
		t.Fatal(err)
	}
	return path
}

func TestLoadDocument(t *testing.T) {
	for _, mode := range []os.FileMode{0o600, 0o644, 0o444} {
		d, err := policy.LoadDocument(writeFile(t, "limits.pids = 9", mode))
		if err != nil || d.Limits.PIDs == nil || *d.Limits.PIDs != 9 {
			t.Errorf("%v: %+v %v", mode, d, err)
		}
	}
	if d, err := policy.LoadDocument(writeFile(t, "", 0o600)); err != nil || d.Limits.PIDs != nil {
		t.Errorf("empty: %+v %v", d, err)
	}
}

// CASES.md G2, ATTACKS.md E4 and E6: what cannot be trusted is not read.
func TestLoadDocumentRefuses(t *testing.T) {
	good := "limits.pids = 9"
	link := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "link.toml")
		if err := os.Symlink(writeFile(t, good, 0o600), path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name  string
		path  func(t *testing.T) string
		class error
	}{
		{"missing", func(t *testing.T) string { return filepath.Join(t.TempDir(), "nope.toml") }, fs.ErrNotExist},
		{"directory", func(t *testing.T) string { return t.TempDir() }, policy.ErrUnsafeFile},
		{"symbolic link", link, policy.ErrUnsafeFile},
		{"group may write", func(t *testing.T) string { return writeFile(t, good, 0o660) }, policy.ErrUnsafeFile},
		{"all may write", func(t *testing.T) string { return writeFile(t, good, 0o606) }, policy.ErrUnsafeFile},
		{"device", func(*testing.T) string { return "/dev/zero" }, policy.ErrUnsafeFile},
		{"large", func(t *testing.T) string { return writeFile(t, strings.Repeat("#\n", 1<<20), 0o600) }, policy.ErrUnsafeFile},
		{"byte order mark", func(t *testing.T) string { return writeFile(t, "\ufeff"+good, 0o600) }, policy.ErrSyntax},
		{"NUL", func(t *testing.T) string { return writeFile(t, good+"\n\x00", 0o600) }, policy.ErrSyntax},
		{"typo", func(t *testing.T) string { return writeFile(t, "limits.pidz = 9", 0o600) }, policy.ErrUnknownKey},
		{"FIFO", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "fifo")
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, policy.ErrUnsafeFile},
		{"foreign owner", func(t *testing.T) string {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			path := writeFile(t, good, 0o600)
			if err := os.Chown(path, 12345, 12345); err != nil {
				t.Skip("cannot give a file away here:", err)
			}
			return path
		}, policy.ErrUnsafeFile},
		{"unreadable", func(t *testing.T) string {
			if os.Geteuid() == 0 {
				t.Skip("root reads everything")
			}
			return writeFile(t, good, 0o000)
		}, fs.ErrPermission},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path(t)
			d, err := policy.LoadDocument(path)
			if !errors.Is(err, tt.class) {
				t.Errorf("got %v, want class %v", err, tt.class)
			}
			if d.Limits.PIDs != nil {
				t.Errorf("got a document: %+v", d)
			}
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name the file", err)
			}
		})
	}
}
