package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// Pruned is what a collection freed.
type Pruned struct {
	Blobs    int   `json:"blobs"`
	Rootfses int   `json:"rootfses"`
	Bytes    int64 `json:"bytes"`
	// InUse counts rootfs files without a reference that a sandbox still
	// runs from; a later Prune takes them.
	InUse int `json:"in_use"`
}

// Prune frees everything in the own store that no image refers to, and what
// dead processes left. The system store is not touched.
func (s *Store) Prune(ctx context.Context) (Pruned, error) {
	if err := s.own.create(); err != nil {
		return Pruned{}, err
	}
	ctx = containerdContext(ctx)
	held, err := flock(ctx, s.own.gcLock(), unix.LOCK_EX, s.wait)
	if err != nil {
		return Pruned{}, fmt.Errorf("prune images: %w", err)
	}
	defer held.Close()
	pruned, err := s.collect(ctx)
	if err != nil {
		return pruned, fmt.Errorf("prune images: %w", err)
	}
	return pruned, nil
}

// collect frees what is unreferenced. The caller holds the exclusive lock.
func (s *Store) collect(ctx context.Context) (Pruned, error) {
	var pruned Pruned
	db, err := s.openDatabase(ctx)
	if err != nil {
		return pruned, err
	}
	if err := s.sweep(ctx, db); err != nil {
		return pruned, err
	}
	// A record that cannot be read may name anything: then nothing goes.
	records, bad := s.own.allRecords()
	if len(bad) > 0 {
		return pruned, errors.Join(bad...)
	}
	if err := db.forgetUnpublished(ctx, records); err != nil {
		return pruned, err
	}
	if err := db.collectBlobs(ctx, &pruned); err != nil {
		return pruned, err
	}
	return pruned, s.own.collectRootfses(records, &pruned)
}

// forgetUnpublished drops the database's references that have no record: a
// process died between the two.
func (db *database) forgetUnpublished(ctx context.Context, records []record) error {
	published := make(map[string]bool)
	for _, r := range records {
		published[r.Image.Reference] = true
	}
	known, err := db.images.List(ctx)
	if err != nil {
		return fmt.Errorf("list references: %w", err)
	}
	for _, image := range known {
		if published[image.Name] {
			continue
		}
		if err := db.images.Delete(ctx, image.Name); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("forget %q: %w", image.Name, err)
		}
	}
	return nil
}

// collectBlobs lets containerd mark and sweep, then removes the files that a
// dead process stored without a reference in the database.
func (db *database) collectBlobs(ctx context.Context, pruned *Pruned) error {
	before := make(map[digest.Digest]int64)
	if err := db.blobs.Walk(ctx, func(info content.Info) error {
		before[info.Digest] = info.Size
		return nil
	}); err != nil && !errors.Is(err, os.ErrNotExist) { // nothing stored yet
		return fmt.Errorf("list blobs: %w", err)
	}
	if _, err := db.meta.GarbageCollect(ctx); err != nil {
		return fmt.Errorf("collect blobs: %w", err)
	}
	if err := db.content.Walk(ctx, func(info content.Info) error {
		delete(before, info.Digest)
		return nil
	}); err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	for dgst, size := range before {
		if err := db.blobs.Delete(ctx, dgst); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("remove blob %s: %w", dgst, err)
		}
		pruned.Blobs++
		pruned.Bytes += size
	}
	return nil
}

// collectRootfses removes the files under rootfs/ that no record names,
// unless somebody holds a lock on them.
func (p place) collectRootfses(records []record, pruned *Pruned) error {
	named := make(map[string]bool)
	for _, r := range records {
		named[r.Rootfs] = true
	}
	entries, err := os.ReadDir(p.rootfses())
	if err != nil {
		return fmt.Errorf("list rootfs files: %w", err)
	}
	for _, e := range entries {
		key, ext, _ := strings.Cut(e.Name(), ".")
		path := filepath.Join(p.rootfses(), e.Name())
		switch {
		case ext == "lock": // only useful while somebody is at work
			err = os.Remove(path)
		case named[key]:
		case ext == "erofs":
			err = removeUnlocked(path, pruned)
		case ext == "json":
			err = os.Remove(path)
		}
		if err != nil {
			return fmt.Errorf("remove rootfs file: %w", err)
		}
	}
	return nil
}

func removeUnlocked(path string, pruned *Pruned) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if err == unix.EWOULDBLOCK {
			pruned.InUse++
			return nil
		}
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	pruned.Rootfses++
	pruned.Bytes += info.Size()
	return nil
}
