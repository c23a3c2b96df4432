package workspace

import (
	"encoding/binary"
	"os"
	"path"
	"strings"
	"testing"
)

// FuzzOpen reads, writes, strips and removes under every name there is. Outside
// the workspace nothing may be read or changed.
func FuzzOpen(f *testing.F) {
	for _, test := range escapes {
		f.Add(test.rel)
	}
	for _, rel := range []string{"real/f", "new", "real//new", "-rf", "a\nb", "\xff", "C:\\x", strings.Repeat("d/", 3000), "real/up/secret"} {
		f.Add(rel)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		base := t.TempDir()
		outside := base + "/outside"
		ws := base + "/ws"
		check(t, os.Mkdir(outside, 0o755))
		check(t, os.Mkdir(ws, 0o755))
		writeFile(t, outside+"/secret", secret)
		check(t, os.Chmod(outside+"/secret", 0o755|os.ModeSetuid))
		before := fingerprint(t, outside)
		linksOut(t, ws, outside)
		dir := openDirAt(t, ws)

		data, err := dir.ReadFile(t.Context(), rel, 100)
		if err == nil && string(data) != "inside" {
			t.Errorf("read %q", data)
		}
		_, _ = dir.StripSetID(t.Context(), []Change{{Path: rel, Type: "file"}})
		if dir.WriteFile(t.Context(), rel, []byte("written"), 0o600) == nil {
			if data, err := os.ReadFile(ws + "/" + path.Clean(rel)); err != nil || string(data) != "written" {
				t.Errorf("wrote elsewhere: %q, %v", data, err)
			}
		}
		_ = dir.Remove(rel)
		if parent := dir.File(); RemoveAll(t.Context(), parent, rel) == nil && strings.Contains(rel, "/") {
			t.Errorf("RemoveAll took the path %q for a name", rel)
		}
		if now := fingerprint(t, outside); now != before {
			t.Errorf("outside changed:\n%s\nwas\n%s", now, before)
		}
		if got := names(t, base); len(got) != 2 {
			t.Errorf("beside the workspace: %q", got)
		}
	})
}

// FuzzParseDirents: the kernel is trusted, a file system in user space is less.
func FuzzParseDirents(f *testing.F) {
	record := func(name string, size int) []byte {
		buf := make([]byte, max(size, 19+len(name)+1))
		binary.NativeEndian.PutUint16(buf[16:], uint16(size))
		copy(buf[19:], name)
		return buf
	}
	f.Add([]byte(nil))
	f.Add(record("name", 24))
	f.Add(append(record(".", 24), record("..", 24)...))
	f.Add(record("x", 0))
	f.Add(record("x", 18))
	f.Add(record("x", 65535)[:40])
	f.Fuzz(func(t *testing.T, buf []byte) {
		for _, entry := range parseDirents(buf) {
			if entry.name == "" || entry.name == "." || entry.name == ".." || strings.ContainsRune(entry.name, 0) {
				t.Errorf("name %q", entry.name)
			}
		}
	})
}
