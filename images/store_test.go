package images

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	digest "github.com/opencontainers/go-digest"
)

// newStore opens an empty store that goes away with the test.
func newStore(t testing.TB) *Store {
	t.Helper()
	return openStore(t, Config{Root: filepath.Join(t.TempDir(), "store")})
}

func openStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// leftovers lists what no command should leave: unpublished files, unfinished
// blobs.
func leftovers(t testing.TB, s *Store) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(s.own.root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.own.root, path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, tempSuffix) || strings.HasPrefix(rel, "content/ingest/") {
			found = append(found, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func digestOf(data []byte) string { return digest.FromBytes(data).String() }
