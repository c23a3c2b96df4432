package images

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	digest "github.com/opencontainers/go-digest"
)

// Progress is one step of a long operation.
type Progress struct {
	// Stage is "read", "packages", "convert" or "publish".
	Stage string
	// Item is the file, layer, package or reference at hand.
	Item string
	// Done and Total count bytes when reading, layers when converting. Total
	// is 0 when it is not known.
	Done, Total int64
}

// ImportOptions says what to take from an archive.
type ImportOptions struct {
	// Reference names the image instead of the archive's own name. It is
	// needed when the archive names none, and an error when it holds more
	// than one image.
	Reference string
	// Platform is "os/arch" or "os/arch/variant"; "" is the host's.
	Platform string
	// Progress is called now and then, from one goroutine. nil is fine.
	Progress func(Progress)
}

func (o ImportOptions) note() func(Progress) {
	if o.Progress == nil {
		return func(Progress) {}
	}
	return o.Progress
}

// Import reads a Docker or OCI archive, plain or packed with gzip or zstd, and
// publishes its images. It reads r to the end or to the first error; when r
// is a pipe, ctx interrupts a read as well. All images of the archive are
// checked before the first is published; after an error nothing of it stays.
func (s *Store) Import(ctx context.Context, r io.Reader, opts ImportOptions) ([]Image, error) {
	if pipe, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok {
		stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	all, err := s.importSource(ctx, tarSource(r), opts)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("import image: %w", err)
	}
	return all, nil
}

// ImportPath is Import of a file, or of a directory that holds an OCI layout
// or an unpacked Docker archive.
func (s *Store) ImportPath(ctx context.Context, path string, opts ImportOptions) ([]Image, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("import image: %w", err)
	}
	if info.IsDir() {
		all, err := s.importSource(ctx, directorySource(path), opts)
		if err != nil {
			return nil, fmt.Errorf("import image from %s: %w", path, err)
		}
		return all, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("import image: %w", err)
	}
	defer f.Close()
	return s.Import(ctx, f, opts)
}

// chosen is a checked image that waits to be published.
type chosen struct {
	name     string
	manifest manifest
	absent   []string
}

func (s *Store) importSource(ctx context.Context, src source, opts ImportOptions) ([]Image, error) {
	want, err := parsePlatform(opts.Platform)
	if err != nil {
		return nil, err
	}
	if opts.Reference != "" {
		if _, err := newName(opts.Reference); err != nil {
			return nil, err
		}
	}
	var all []Image
	err = s.change(ctx, func(ctx context.Context, db *database) error {
		a, err := s.ingest(ctx, db, src, opts.note())
		if err != nil {
			return err
		}
		refs, err := s.references(ctx, db, a)
		if err != nil {
			return err
		}
		if refs, err = rename(refs, opts.Reference); err != nil {
			return err
		}
		var ready []chosen
		for _, ref := range refs {
			c := catalogue{seen: make(map[digest.Digest]bool)}
			if err := c.visit(ctx, db, ref.descs, 0, s.limits); err != nil {
				return err
			}
			best, absent, err := c.choose(want)
			if err != nil {
				return fmt.Errorf("%s: %w", ref.reference, err)
			}
			m, err := db.readManifest(ctx, best.desc, s.limits)
			if err != nil {
				return fmt.Errorf("%s: %w", ref.reference, err)
			}
			ready = append(ready, chosen{ref.reference, m, absent})
		}
		all, err = s.publishAll(ctx, db, ready, opts.note())
		return err
	})
	return all, err
}

// publishAll publishes the images; all their rootfs files first, since making
// those is what can still go wrong.
func (s *Store) publishAll(ctx context.Context, db *database, ready []chosen, note func(Progress)) ([]Image, error) {
	for _, c := range ready {
		facts, err := s.rootfs(ctx, db, c.manifest, note)
		if err == nil {
			_, err = c.manifest.config.imageConfig(facts.Passwd, facts.Group)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	var all []Image
	for _, c := range ready {
		note(Progress{Stage: "publish", Item: c.name})
		image, err := s.publish(ctx, db, c.name, c.manifest, c.absent, note)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		all = append(all, image)
	}
	return all, nil
}

// newName reads a reference that an image is to get.
func newName(reference string) (string, error) {
	name, pin, err := parseReference(reference)
	if err == nil && pin != "" {
		err = fmt.Errorf("%w %q: a digest cannot be given, it follows from the image", ErrReference, reference)
	}
	return name, err
}

// rename brings the archive's names into the store's spelling, or gives its
// only image the wanted one.
func rename(refs []named, reference string) ([]named, error) {
	if reference != "" {
		name, err := newName(reference)
		if err != nil {
			return nil, err
		}
		first := refs[0].descs
		for _, ref := range refs[1:] {
			// Several tags of one image are one image.
			if len(ref.descs) != 1 || len(first) != 1 || ref.descs[0].Digest != first[0].Digest {
				return nil, fmt.Errorf("%w %q: the archive holds several images", ErrReference, reference)
			}
		}
		return []named{{name, first}}, nil
	}
	var all []named
	seen := map[string]bool{}
	for _, ref := range refs {
		if ref.reference == "" {
			return nil, fmt.Errorf("%w: the archive names none; give one", ErrReference)
		}
		name, _, err := parseReference(ref.reference)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("%w %q: the archive gives it to two images", ErrReference, name)
		}
		seen[name] = true
		all = append(all, named{name, ref.descs})
	}
	return all, nil
}
