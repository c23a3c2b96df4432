package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
)

// sweep removes what dead processes were writing: unfinished blobs and
// unpublished files. The caller holds the exclusive lock, so nobody alive is
// writing either.
func (s *Store) sweep(ctx context.Context, db *database) error {
	unfinished, err := db.content.ListStatuses(ctx)
	if err != nil {
		return fmt.Errorf("list unfinished blobs: %w", err)
	}
	for _, status := range unfinished {
		if err := db.content.Abort(ctx, status.Ref); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("remove unfinished blob: %w", err)
		}
	}
	// Directly, not through the store: a process may have died before its
	// directory was complete, and such a one is not listed.
	ingests := filepath.Join(s.own.content(), "ingest")
	return errors.Join(
		removeEntries(ingests, func(string) bool { return true }),
		// containerd's test for fs-verity support.
		removeEntries(s.own.content(), func(name string) bool { return strings.HasPrefix(name, ".fsverity-check-") }),
		removeEntries(s.own.root, isPartial),
		removeEntries(s.own.records(), isPartial),
		removeEntries(s.own.rootfses(), isPartial),
	)
}

func isPartial(name string) bool { return strings.HasSuffix(name, tempSuffix) }

func removeEntries(dir string, match func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep store: %w", err)
	}
	for _, e := range entries {
		if !match(e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("sweep store: %w", err)
		}
	}
	return nil
}
