package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/content"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"gaol/images/layers"
)

// converter is part of each rootfs's key. It changes whenever the same layers
// give other bytes than before.
const converter = "erofs 1"

// lockChain lets one process make a rootfs while others wait for it. One that
// waits too long makes its own: the results are the same.
func (s *Store) lockChain(ctx context.Context, key string) (release func(), err error) {
	held, err := flock(ctx, filepath.Join(s.own.rootfses(), key+".lock"), unix.LOCK_EX, s.wait)
	if errors.Is(err, ErrBusy) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	return func() { held.Close() }, nil
}

// convert writes the chain of m as one EROFS file. The file gets its name only
// after every layer has turned out to have the digest that the config names.
func (s *Store) convert(ctx context.Context, db *database, m manifest, key string, note func(Progress)) (rootfsFacts, error) {
	b := &budget{what: "the image", limits: s.limits}
	var chain []layers.Layer
	for i, desc := range m.layers {
		chain = append(chain, layers.Layer{Open: func() (io.ReadCloser, error) {
			note(Progress{Stage: "convert", Item: desc.Digest.String(), Done: int64(i + 1), Total: int64(len(m.layers))})
			return db.openLayer(ctx, desc, m.config.RootFS.DiffIDs[i], b)
		}})
	}
	cfg := layers.Config{Limits: layers.Limits{Bytes: s.limits.Bytes}}
	if _, err := hex.Decode(cfg.UUID[:], []byte(key[:32])); err != nil {
		return rootfsFacts{}, fmt.Errorf("convert layers: %w", err)
	}
	var facts rootfsFacts
	err := publishFile(s.own.rootfsFile(key), func(f *os.File) error {
		info, err := layers.Build(ctx, f, chain, cfg)
		if err != nil {
			return fmt.Errorf("convert layers: %w", translateLayers(err))
		}
		facts.Passwd, facts.Group = info.Passwd, info.Group
		facts.Digest, facts.Size, err = hashFile(ctx, f)
		return err
	})
	if err != nil {
		return rootfsFacts{}, err
	}
	return facts, s.own.writeFacts(key, facts)
}

// translateLayers gives the layers package's errors our own classes.
func translateLayers(err error) error {
	switch {
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrLimit):
		return err
	case errors.Is(err, layers.ErrLimit):
		return fmt.Errorf("%w: %w", ErrLimit, err)
	case errors.Is(err, layers.ErrEntry):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return asInvalid(err)
}

func hashFile(ctx context.Context, f *os.File) (digest.Digest, int64, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", 0, fmt.Errorf("hash rootfs: %w", err)
	}
	h := sha256.New()
	n, err := io.Copy(h, contextReader{ctx, f})
	if err != nil {
		return "", 0, fmt.Errorf("hash rootfs: %w", err)
	}
	return digest.NewDigest(digest.SHA256, h), n, nil
}

// contextReader ends a long read when ctx does.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// openLayer gives a layer's tar stream, which ends in an error unless all of
// it has the digest diffID.
func (db *database) openLayer(ctx context.Context, desc ocispec.Descriptor, diffID digest.Digest, b *budget) (io.ReadCloser, error) {
	blob, err := db.content.ReaderAt(ctx, desc)
	if err != nil {
		return nil, fmt.Errorf("open layer %s: %w", desc.Digest, err)
	}
	unpacked, err := decompress(ctx, content.NewReader(blob), b)
	if err != nil {
		blob.Close()
		return nil, fmt.Errorf("open layer %s: %w", desc.Digest, err)
	}
	return &layerStream{unpacked: unpacked, blob: blob, want: diffID, hash: sha256.New()}, nil
}

type layerStream struct {
	unpacked io.ReadCloser
	blob     io.Closer
	want     digest.Digest
	hash     hash.Hash
}

func (l *layerStream) Read(p []byte) (int, error) {
	n, err := l.unpacked.Read(p)
	l.hash.Write(p[:n])
	if err == io.EOF {
		if got := digest.NewDigest(digest.SHA256, l.hash); got != l.want {
			return n, fmt.Errorf("%w: layer has the diff id %s, not %s", ErrInvalid, got, l.want)
		}
	}
	return n, err
}

func (l *layerStream) Close() error {
	return errors.Join(l.unpacked.Close(), l.blob.Close())
}
