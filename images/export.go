package images

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

// Export writes the image as an archive that is an OCI layout and a Docker
// archive at once, with the one platform that the store holds.
func (s *Store) Export(ctx context.Context, ref string, w io.Writer) error {
	name, pin, err := parseReference(ref)
	if err != nil {
		return err
	}
	p, r, err := s.find(name, pin)
	if err != nil {
		return err
	}
	if err := s.export(ctx, p, r, w); err != nil {
		return fmt.Errorf("export image %q: %w", name, err)
	}
	return nil
}

func (s *Store) export(ctx context.Context, p place, r record, w io.Writer) error {
	ctx = containerdContext(ctx)
	if !p.readOnly {
		held, err := flock(ctx, p.gcLock(), unix.LOCK_SH, s.wait)
		if err != nil {
			return err
		}
		defer held.Close()
	}
	blobs, err := local.NewStore(p.content())
	if err != nil {
		return fmt.Errorf("open content store: %w", err)
	}
	info, err := os.Stat(p.blobFile(r.Image.Digest))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	full, err := reference.ParseDockerRef(r.Image.Reference)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReference, err)
	}
	manifest := ocispec.Descriptor{MediaType: r.ManifestType, Digest: r.Image.Digest, Size: info.Size()}
	return archive.Export(ctx, blobs, w, archive.WithManifest(manifest, full.String()), archive.WithAllPlatforms())
}
