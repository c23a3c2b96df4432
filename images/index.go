package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/platforms"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// candidate is one manifest that an index leads to.
type candidate struct {
	desc     ocispec.Descriptor
	platform ocispec.Platform
}

// catalogue is what a set of descriptors leads to.
type catalogue struct {
	present []candidate
	// absent names the platforms whose manifests the source does not hold.
	absent []string
	seen   map[digest.Digest]bool
}

// visit follows descriptors, and indexes up to the depth limit, to manifests.
func (c *catalogue) visit(ctx context.Context, db *database, descs []ocispec.Descriptor, depth int, limits Limits) error {
	if depth > limits.Depth {
		return fmt.Errorf("index: %w: nested more than %d deep", ErrLimit, limits.Depth)
	}
	for _, desc := range descs {
		if err := checkDigest(desc.Digest); err != nil {
			return fmt.Errorf("index: %w", err)
		}
		known := slices.Contains(indexTypes, desc.MediaType) || slices.Contains(manifestTypes, desc.MediaType)
		if !known || isAttestation(desc) || c.seen[desc.Digest] {
			continue // unknown kinds are for others to read
		}
		if c.seen[desc.Digest] = true; len(c.seen) > limits.Manifests {
			return fmt.Errorf("index: %w: more than %d manifests", ErrLimit, limits.Manifests)
		}
		if err := c.visitOne(ctx, db, desc, depth, limits); err != nil {
			return err
		}
	}
	return nil
}

func (c *catalogue) visitOne(ctx context.Context, db *database, desc ocispec.Descriptor, depth int, limits Limits) error {
	data, err := db.readJSON(ctx, desc, limits)
	if errors.Is(err, errAbsent) {
		c.absent = append(c.absent, describe(desc))
		return nil
	}
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	d, err := parseDocument(data, desc.MediaType)
	if err != nil {
		return fmt.Errorf("index entry %s: %w", desc.Digest, err)
	}
	if slices.Contains(indexTypes, desc.MediaType) {
		return c.visit(ctx, db, d.Manifests, depth+1, limits)
	}
	if d.ArtifactType != "" || !slices.Contains(configTypes, d.Config.MediaType) {
		return nil // a signature, a chart, a bill of materials
	}
	found := candidate{desc: desc}
	if desc.Platform != nil && desc.Platform.OS != "" && desc.Platform.Architecture != "" {
		found.platform = *desc.Platform
	} else if found.platform, err = db.platformOfConfig(ctx, *d.Config, limits); err != nil {
		if errors.Is(err, errAbsent) {
			c.absent = append(c.absent, desc.Digest.String())
			return nil
		}
		return err
	}
	found.platform = platforms.Normalize(found.platform)
	c.present = append(c.present, found)
	return nil
}

func (db *database) platformOfConfig(ctx context.Context, desc ocispec.Descriptor, limits Limits) (ocispec.Platform, error) {
	var p ocispec.Platform
	data, err := db.readJSON(ctx, desc, limits)
	if err != nil {
		return p, fmt.Errorf("image config: %w", err)
	}
	if err := decodeJSON(data, &p); err != nil {
		return p, fmt.Errorf("image config: %w", err)
	}
	if p.OS == "" || p.Architecture == "" {
		// Old tools leave it out and mean their own.
		return platforms.DefaultSpec(), nil
	}
	return p, nil
}

// isAttestation tells BuildKit's statements about an image from images.
func isAttestation(desc ocispec.Descriptor) bool {
	p := desc.Platform
	return desc.Annotations["vnd.docker.reference.type"] != "" ||
		(p != nil && p.OS == "unknown" && p.Architecture == "unknown")
}

func describe(desc ocispec.Descriptor) string {
	if desc.Platform == nil || desc.Platform.OS == "" {
		return desc.Digest.String()
	}
	return platforms.FormatAll(*desc.Platform)
}

// choose picks the best match for want, and names the platforms left behind.
func (c *catalogue) choose(want ocispec.Platform) (candidate, []string, error) {
	matcher := platforms.Only(want)
	var best *candidate
	for i, found := range c.present {
		if matcher.Match(found.platform) && (best == nil || matcher.Less(found.platform, best.platform)) {
			best = &c.present[i]
		}
	}
	var others []string
	for i, found := range c.present {
		if best != &c.present[i] {
			others = append(others, platforms.FormatAll(found.platform))
		}
	}
	if best == nil {
		has := "it has none"
		if len(others) > 0 {
			has = "has: " + strings.Join(others, ", ")
		}
		if len(c.absent) > 0 {
			has += "; named but missing: " + strings.Join(c.absent, ", ")
		}
		return candidate{}, nil, fmt.Errorf("%w %s; %s", ErrPlatform, platforms.FormatAll(want), has)
	}
	return *best, c.absent, nil
}

// parsePlatform reads "os/arch" or "os/arch/variant"; "" is this host's.
func parsePlatform(s string) (ocispec.Platform, error) {
	if s == "" {
		return platforms.DefaultSpec(), nil
	}
	p, err := platforms.Parse(s)
	if err != nil {
		return p, fmt.Errorf("platform %q: %w: %w", s, ErrInvalid, err)
	}
	return platforms.Normalize(p), nil
}
