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
	dir := t.TempDir()
	link, fifo := filepath.Join(dir, "link.toml"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.Symlink(writeFile(t, good, 0o600), link), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		class      error
	}{
		{"missing", filepath.Join(dir, "nope.toml"), fs.ErrNotExist},
		{"directory", dir, policy.ErrUnsafeFile},
		{"symbolic link", link, policy.ErrUnsafeFile},
		{"FIFO", fifo, policy.ErrUnsafeFile},
		{"device", "/dev/zero", policy.ErrUnsafeFile},
		{"group may write", writeFile(t, good, 0o660), policy.ErrUnsafeFile},
		{"all may write", writeFile(t, good, 0o606), policy.ErrUnsafeFile},
		{"large", writeFile(t, strings.Repeat("#\n", 1<<20), 0o600), policy.ErrUnsafeFile},
		{"byte order mark", writeFile(t, "\ufeff"+good, 0o600), policy.ErrSyntax},
		{"NUL", writeFile(t, good+"\n\x00", 0o600), policy.ErrSyntax},
		{"typo", writeFile(t, "limits.pidz = 9", 0o600), policy.ErrUnknownKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refusesToLoad(t, tt.path, tt.class) })
	}
}

func TestLoadDocumentRefusesForeignOwner(t *testing.T) {
	path := writeFile(t, "limits.pids = 9", 0o600)
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Skip("only root can give a file away:", err)
	}
	refusesToLoad(t, path, policy.ErrUnsafeFile)
}

func TestLoadDocumentRefusesUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	refusesToLoad(t, writeFile(t, "limits.pids = 9", 0o000), fs.ErrPermission)
}

func refusesToLoad(t *testing.T, path string, class error) {
	t.Helper()
	d, err := policy.LoadDocument(path)
	if !errors.Is(err, class) {
		t.Fatalf("got %v, want class %v", err, class)
	}
	if d.Limits.PIDs != nil {
		t.Errorf("got a document: %+v", d)
	}
	if !strings.Contains(err.Error(), path) {
		t.Errorf("%v does not name the file", err)
	}
}
