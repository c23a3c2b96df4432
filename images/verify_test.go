package images

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Each kind of damage must be seen, and named with its image where one is
// known.
func TestVerifySeesDamage(t *testing.T) {
	blob := func(s *Store, r record) string { return s.own.blobFile(r.Image.Digest) }
	rootfs := func(s *Store, r record) string { return s.own.rootfsFile(r.Rootfs) }
	refs := func(s *Store, _ record) string { return filepath.Join(s.own.records(), recordName("app")) }
	flip := func(path string) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, info.Size()/2); err != nil {
			return err
		}
		b[0] ^= 1
		_, err = f.WriteAt(b, info.Size()/2)
		return err
	}
	cut := func(path string) error { return os.Truncate(path, 1) }
	for name, tt := range map[string]struct {
		file   func(*Store, record) string
		damage func(string) error
		named  bool
	}{
		"blob changed":   {blob, flip, false},
		"blob gone":      {blob, os.Remove, true},
		"rootfs changed": {rootfs, flip, true},
		"rootfs cut":     {rootfs, cut, true},
		"rootfs gone":    {rootfs, os.Remove, true},
		"record cut":     {refs, cut, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			add(t, s, "app", picture{})
			r, err := s.own.readRecord("app")
			if err != nil {
				t.Fatal(err)
			}
			path := tt.file(s, r)
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(path); err != nil {
				t.Fatal(err)
			}
			problems, err := s.Verify(t.Context())
			if err != nil || len(problems) == 0 {
				t.Fatalf("found %v, %v", problems, err)
			}
			named := false
			for _, p := range problems {
				named = named || p.Reference == "app"
				if !errors.Is(p.Err, ErrDamaged) {
					t.Errorf("class of %v", p.Err)
				}
			}
			if tt.named && !named {
				t.Errorf("image not named: %v", problems)
			}
			// The way out works: remove it and make it again.
			if err := s.Remove(t.Context(), "app"); err != nil {
				t.Fatalf("remove: %v", err)
			}
			add(t, s, "app", picture{})
			if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("after: %v, %v", problems, err)
			}
		})
	}
}

func TestVerifyOfNothing(t *testing.T) {
	if problems, err := newStore(t).Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
