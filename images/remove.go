package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"
)

// Remove takes the reference away and frees what no other image needs. A
// rootfs that a sandbox runs from stays until a later Prune.
func (s *Store) Remove(ctx context.Context, ref string) error {
	name, pin, err := parseReference(ref)
	if err != nil {
		return err
	}
	p, _, err := s.find(name, pin)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	if p.readOnly {
		return fmt.Errorf("remove image %q: %w (%s)", name, ErrReadOnly, p.root)
	}
	err = s.change(ctx, func(ctx context.Context, db *database) error {
		// The record first: without it the image is gone, and whatever
		// remains after a crash is garbage.
		err := os.Remove(filepath.Join(p.records(), recordName(name))) //nolint:gosec // the last part is a hash
		if errors.Is(err, os.ErrNotExist) {
			return s.notFound(name, pin)
		}
		if err != nil {
			return err
		}
		if err := syncDirectory(p.records()); err != nil {
			return err
		}
		if err := db.images.Delete(ctx, name); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove image %q: %w", name, err)
	}
	return nil
}
