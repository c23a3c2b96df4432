package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

// Problem is one difference between what was published and what is there.
type Problem struct {
	// Reference is the image that suffers, "" if it is not known.
	Reference string `json:"reference,omitempty"`
	// Path is the file at fault.
	Path string `json:"path"`
	// Err wraps ErrDamaged.
	Err error `json:"-"`
}

func (p Problem) String() string {
	if p.Reference == "" {
		return p.Err.Error()
	}
	return fmt.Sprintf("%s: %v", p.Reference, p.Err)
}

// Verify hashes every blob and rootfs of the own store, and every rootfs of
// the system store, and gives the problems it finds. An error means that it
// could not look.
func (s *Store) Verify(ctx context.Context) ([]Problem, error) {
	var found []Problem
	for _, p := range s.places() {
		problems, err := s.verifyPlace(ctx, p)
		if err != nil {
			return found, fmt.Errorf("verify images: %w", err)
		}
		found = append(found, problems...)
	}
	return found, nil
}

func (s *Store) verifyPlace(ctx context.Context, p place) ([]Problem, error) {
	if _, err := os.Stat(p.root); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var v verification
	if !p.readOnly {
		held, err := flock(ctx, p.gcLock(), unix.LOCK_SH, s.wait)
		if err != nil {
			return nil, err
		}
		defer held.Close()
		if err := v.blobs(ctx, p); err != nil {
			return nil, err
		}
	}
	records, bad := p.allRecords()
	for _, err := range bad {
		v.found = append(v.found, Problem{Path: p.records(), Err: err})
	}
	for _, r := range records {
		if !p.readOnly {
			v.contents(p, r)
		}
		if err := v.rootfs(ctx, p, r); err != nil {
			return v.found, err
		}
	}
	return v.found, nil
}

// verification collects problems.
type verification struct{ found []Problem }

func (v *verification) add(reference, path, format string, args ...any) {
	err := fmt.Errorf("%w: %s: %s", ErrDamaged, path, fmt.Sprintf(format, args...))
	v.found = append(v.found, Problem{Reference: reference, Path: path, Err: err})
}

// blobs hashes every stored blob.
func (v *verification) blobs(ctx context.Context, p place) error {
	dir := filepath.Join(p.content(), "blobs", "sha256")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		got, _, err := hashPath(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.add("", path, "cannot be read: %v", err)
		} else if got.Encoded() != e.Name() {
			v.add("", path, "its digest is %s", got)
		}
	}
	return nil
}

// contents checks that what the manifest names is there; blobs has hashed it.
func (v *verification) contents(p place, r record) {
	data, err := p.readBlob(r.Image.Digest)
	if err != nil {
		v.add(r.Image.Reference, p.blobFile(r.Image.Digest), "manifest: %v", err)
		return
	}
	d, err := parseDocument(data, r.ManifestType)
	if err != nil {
		v.add(r.Image.Reference, p.blobFile(r.Image.Digest), "manifest: %v", err)
		return
	}
	for _, desc := range append([]ocispec.Descriptor{*d.Config}, d.Layers...) {
		if err := checkDigest(desc.Digest); err != nil {
			v.add(r.Image.Reference, p.blobFile(r.Image.Digest), "manifest: %v", err)
			continue
		}
		path := p.blobFile(desc.Digest)
		info, err := os.Stat(path)
		if err != nil {
			v.add(r.Image.Reference, path, "blob is missing")
		} else if info.Size() != desc.Size {
			v.add(r.Image.Reference, path, "has %d bytes, want %d", info.Size(), desc.Size)
		}
	}
}

// rootfs hashes the file that sandboxes boot from.
func (v *verification) rootfs(ctx context.Context, p place, r record) error {
	path := p.rootfsFile(r.Rootfs)
	got, size, err := hashPath(ctx, path)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		v.add(r.Image.Reference, path, "cannot be read: %v", err)
	case size != r.Image.RootfsSize:
		v.add(r.Image.Reference, path, "has %d bytes, want %d", size, r.Image.RootfsSize)
	case got != r.Image.RootfsDigest:
		v.add(r.Image.Reference, path, "its digest is %s, want %s", got, r.Image.RootfsDigest)
	}
	return nil
}

func hashPath(ctx context.Context, path string) (digest.Digest, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return hashFile(ctx, f)
}
