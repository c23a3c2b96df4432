package images

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	cimages "github.com/containerd/containerd/v2/core/images"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

var (
	indexTypes    = []string{ocispec.MediaTypeImageIndex, cimages.MediaTypeDockerSchema2ManifestList}
	manifestTypes = []string{ocispec.MediaTypeImageManifest, cimages.MediaTypeDockerSchema2Manifest}
	configTypes   = []string{ocispec.MediaTypeImageConfig, cimages.MediaTypeDockerSchema2Config}
	layerTypes    = []string{
		ocispec.MediaTypeImageLayer, ocispec.MediaTypeImageLayerGzip, ocispec.MediaTypeImageLayerZstd,
		cimages.MediaTypeDockerSchema2Layer, cimages.MediaTypeDockerSchema2LayerGzip,
		"application/vnd.docker.image.rootfs.diff.tar.zstd",
	}
)

// document is an index or a manifest: what it is must follow from its media
// type, and nothing in it may make a reader take it for the other
// (CVE-2021-41190).
type document struct {
	SchemaVersion int                  `json:"schemaVersion"`
	MediaType     string               `json:"mediaType"`
	Manifests     []ocispec.Descriptor `json:"manifests"`
	Config        *ocispec.Descriptor  `json:"config"`
	Layers        []ocispec.Descriptor `json:"layers"`
	FSLayers      json.RawMessage      `json:"fsLayers"`
	ArtifactType  string               `json:"artifactType"`
}

// parseDocument reads a document that is said to be of mediaType.
func parseDocument(data []byte, mediaType string) (document, error) {
	var d document
	if err := decodeJSON(data, &d); err != nil {
		return d, err
	}
	index := slices.Contains(indexTypes, mediaType)
	switch {
	case !index && !slices.Contains(manifestTypes, mediaType):
		return d, fmt.Errorf("%w: media type %.100q is neither index nor manifest", ErrInvalid, mediaType)
	case d.MediaType != "" && d.MediaType != mediaType:
		return d, fmt.Errorf("%w: document calls itself %.100q, its descriptor %.100q", ErrInvalid, d.MediaType, mediaType)
	case d.SchemaVersion != 2:
		return d, fmt.Errorf("%w: schema version %d, want 2", ErrInvalid, d.SchemaVersion)
	case d.FSLayers != nil, index && (d.Config != nil || d.Layers != nil), !index && d.Manifests != nil:
		return d, fmt.Errorf("%w: document is index and manifest at once", ErrInvalid)
	case !index && d.Config == nil:
		return d, fmt.Errorf("%w: manifest without config", ErrInvalid)
	}
	return d, nil
}

// manifest is one platform's image, checked: config and layers are there with
// the sizes and digests that it names.
type manifest struct {
	desc   ocispec.Descriptor
	layers []ocispec.Descriptor
	config imageFile
	size   int64 // of everything
}

// readManifest reads and checks the manifest that desc names, and all below.
func (db *database) readManifest(ctx context.Context, desc ocispec.Descriptor, limits Limits) (manifest, error) {
	m := manifest{desc: desc, size: desc.Size}
	data, err := db.readJSON(ctx, desc, limits)
	if err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	d, err := parseDocument(data, desc.MediaType)
	if err != nil {
		return m, fmt.Errorf("manifest %s: %w", desc.Digest, err)
	}
	if len(d.Layers) > limits.Layers {
		return m, fmt.Errorf("manifest %s: %w: %d layers, more than %d", desc.Digest, ErrLimit, len(d.Layers), limits.Layers)
	}
	if !slices.Contains(configTypes, d.Config.MediaType) {
		return m, fmt.Errorf("manifest %s: %w: config of type %.100q is no image", desc.Digest, ErrInvalid, d.Config.MediaType)
	}
	data, err = db.readJSON(ctx, *d.Config, limits)
	if err != nil {
		return m, fmt.Errorf("image config: %w", err)
	}
	if m.config, err = parseImageFile(data, len(d.Layers)); err != nil {
		return m, err
	}
	m.size += d.Config.Size
	for i, layer := range d.Layers {
		if !slices.Contains(layerTypes, layer.MediaType) {
			return m, fmt.Errorf("layer %d: %w: media type %.100q", i+1, ErrInvalid, layer.MediaType)
		}
		if err := db.check(ctx, layer); err != nil {
			return m, fmt.Errorf("layer %d: %w", i+1, err)
		}
		m.size += layer.Size
	}
	m.layers = d.Layers
	return m, nil
}
