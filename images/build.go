package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"

	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// BuildOptions says what to build.
type BuildOptions struct {
	// Recipe comes from [LoadRecipe] or [ParseRecipe].
	Recipe Recipe
	// Reference names the image; "" means the recipe's name.
	Reference string
	// TempDir is where an ordinary user's packages are unpacked for the time
	// of the build; "" means /tmp. It must be reachable for other ids, so
	// the store does not serve. The super-user's build uses the store.
	TempDir string
	// Progress is called now and then. nil is fine.
	Progress func(Progress)
}

// Build installs the recipe's packages with mmdebstrap, from the host's own
// apt sources, and publishes what the recipe does not prune as an image of one
// layer. The same packages give the same digest. When ctx ends, every process
// of the build ends and nothing of it stays. [ErrBuilder] means that this host
// or user cannot build; the message says what helps.
func (s *Store) Build(ctx context.Context, opts BuildOptions) (Image, error) {
	name := opts.Reference
	if name == "" {
		name = opts.Recipe.Name
	}
	image, err := s.build(ctx, name, opts)
	if err != nil {
		return Image{}, fmt.Errorf("build image %q: %w", name, err)
	}
	return image, nil
}

func (s *Store) build(ctx context.Context, reference string, opts BuildOptions) (Image, error) {
	var image Image
	name, err := newName(reference)
	if err != nil {
		return image, err
	}
	if err := opts.Recipe.check(); err != nil {
		return image, fmt.Errorf("recipe: %w: %w", ErrInvalid, err)
	}
	note := ImportOptions{Progress: opts.Progress}.note()
	err = s.change(ctx, func(ctx context.Context, db *database) error {
		layer, diffID, err := s.buildLayer(ctx, db, opts, note)
		if err != nil {
			return err
		}
		desc, err := db.storeImage(ctx, opts.Recipe, layer, diffID)
		if err != nil {
			return err
		}
		m, err := db.readManifest(ctx, desc, s.limits)
		if err != nil {
			return err
		}
		image, err = s.publish(ctx, db, name, m, nil, note)
		return err
	})
	return image, err
}

// buildLayer runs mmdebstrap through the filter into the content store.
func (s *Store) buildLayer(ctx context.Context, db *database, opts BuildOptions, note func(Progress)) (layer ocispec.Descriptor, diffID digest.Digest, err error) {
	temp, err := s.buildDirectory(opts.TempDir)
	if err != nil {
		return layer, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	packagesR, packagesW := io.Pipe()
	layerR, layerW := io.Pipe()
	done := make(chan error, 2)
	go func() {
		err := mmdebstrap{recipe: opts.Recipe, temp: temp, note: note}.run(ctx, packagesW)
		packagesW.CloseWithError(orEOF(err))
		done <- err
	}()
	go func() {
		hash := digest.SHA256.Digester()
		err := packLayer(layerW, hash.Hash(), packagesR, opts.Recipe)
		diffID = hash.Digest()
		// Without a reader mmdebstrap would wait for ever.
		packagesR.CloseWithError(orEOF(err))
		layerW.CloseWithError(orEOF(err))
		done <- err
	}()
	layer, err = db.storeBlob(ctx, layerR, "", unknownSize)
	layerR.CloseWithError(orEOF(err))
	if err != nil {
		cancel(err)
	}
	first, second := <-done, <-done
	layer.MediaType = ocispec.MediaTypeImageLayerZstd
	if err != nil || first != nil || second != nil {
		return layer, "", cause(ctx, err, first, second)
	}
	return layer, diffID, nil
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// cause picks the error that the others follow from: a broken pipe in one
// part is the end of another.
func cause(ctx context.Context, errs ...error) error {
	if err := ctx.Err(); err != nil && errors.Is(context.Cause(ctx), err) {
		return err
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

// packLayer filters the package tree and packs it; hash gets the plain stream.
func packLayer(out io.Writer, hash io.Writer, packages io.Reader, recipe Recipe) error {
	// One encoder goroutine: the blocks, and so the digest, never depend on
	// the number of processors.
	packed, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("pack layer: %w", err)
	}
	if err := filterTree(io.MultiWriter(packed, hash), packages, recipe); err != nil {
		_ = packed.Close() // only ends the encoder: the layer is lost
		return err
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("pack layer: %w", err)
	}
	return nil
}

// buildDirectory makes the directory that the packages are unpacked in.
func (s *Store) buildDirectory(temp string) (string, error) {
	parent, pattern := temp, "gaol-build-*"
	if os.Geteuid() == 0 {
		parent, pattern = s.own.root, "build.*"+tempSuffix
	} else if temp == "" {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", fmt.Errorf("make build directory: %w", err)
	}
	// The ids that packages are unpacked as must get in.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", fmt.Errorf("make build directory: %w", errors.Join(err, os.Remove(dir)))
	}
	return filepath.Clean(dir), nil
}

// storeImage writes config and manifest for the built layer.
func (db *database) storeImage(ctx context.Context, r Recipe, layer ocispec.Descriptor, diffID digest.Digest) (ocispec.Descriptor, error) {
	config := ocispec.Image{
		Platform: ocispec.Platform{Architecture: goruntime.GOARCH, OS: goruntime.GOOS},
		Config: ocispec.ImageConfig{
			User: r.User, Entrypoint: r.Entrypoint, Cmd: r.Cmd, WorkingDir: r.WorkingDir,
		},
		RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{diffID}},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		config.Config.Env = append(config.Config.Env, name+"="+r.Env[name])
	}
	desc, err := db.storeJSON(ctx, ocispec.MediaTypeImageConfig, config)
	if err != nil {
		return desc, err
	}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: desc, Layers: []ocispec.Descriptor{layer}}
	m.SchemaVersion = 2
	return db.storeJSON(ctx, m.MediaType, m)
}
