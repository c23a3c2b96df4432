package images

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	digest "github.com/opencontainers/go-digest"
)

// Details is everything that the store knows about one image.
type Details struct {
	Image
	// Config is what a sandbox gets of the image's config.
	Config ImageConfig `json:"config"`
	// Rootfs is the path of the EROFS file.
	Rootfs string `json:"rootfs"`
	// DiffIDs are the layers' digests unpacked, lowest first.
	DiffIDs []digest.Digest `json:"diff_ids"`
	// Layers are the layers as stored. Empty for the system store's images,
	// whose blobs need not be readable.
	Layers []LayerDetails `json:"layers,omitempty"`
}

// LayerDetails is one stored layer. Size is in bytes, as stored.
type LayerDetails struct {
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"media_type"`
	Size      int64         `json:"size"`
}

// Inspect tells everything about the image that ref names.
func (s *Store) Inspect(ctx context.Context, ref string) (Details, error) {
	name, pin, err := parseReference(ref)
	if err != nil {
		return Details{}, err
	}
	p, r, err := s.find(name, pin)
	if err != nil {
		return Details{}, err
	}
	d := Details{Image: r.Image, Config: r.Config, Rootfs: p.rootfsFile(r.Rootfs), DiffIDs: r.DiffIDs}
	if p.readOnly {
		return d, ctx.Err()
	}
	data, err := p.readBlob(r.Image.Digest)
	if err != nil {
		return d, fmt.Errorf("inspect image %q: %w: manifest: %w", name, ErrDamaged, err)
	}
	m, err := parseDocument(data, r.ManifestType)
	if err != nil {
		return d, fmt.Errorf("inspect image %q: %w: %w", name, ErrDamaged, err)
	}
	for _, layer := range m.Layers {
		d.Layers = append(d.Layers, LayerDetails{layer.Digest, layer.MediaType, layer.Size})
	}
	return d, ctx.Err()
}

// blobFile is where containerd keeps a blob; d has passed checkDigest.
func (p place) blobFile(d digest.Digest) string {
	return filepath.Join(p.content(), "blobs", "sha256", d.Encoded())
}

// readBlob reads a small blob without the database.
func (p place) readBlob(d digest.Digest) ([]byte, error) {
	if err := checkDigest(d); err != nil {
		return nil, err
	}
	f, err := os.Open(p.blobFile(d))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 64 << 20
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrLimit, most)
	}
	return data, nil
}
