package images

import (
	"context"
	"fmt"

	"github.com/containerd/containerd/v2/core/content"
	cimages "github.com/containerd/containerd/v2/core/images"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// dockerImage is an element of the manifest.json that "docker save" writes.
// Its paths are names of archive entries.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// parseDockerManifest reads manifest.json.
func parseDockerManifest(data []byte, limits Limits) ([]dockerImage, error) {
	var all []dockerImage
	if err := decodeJSON(data, &all); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("manifest.json: %w: it lists no image", ErrInvalid)
	}
	if len(all) > limits.Manifests {
		return nil, fmt.Errorf("manifest.json: %w: more than %d images", ErrLimit, limits.Manifests)
	}
	for _, image := range all {
		if len(image.Layers) > limits.Layers {
			return nil, fmt.Errorf("manifest.json: %w: %d layers, more than %d", ErrLimit, len(image.Layers), limits.Layers)
		}
	}
	return all, nil
}

// dockerManifest writes the manifest that Docker's format lacks.
func (db *database) dockerManifest(ctx context.Context, a archived, image dockerImage) (ocispec.Descriptor, error) {
	config, err := a.find(image.Config)
	if err != nil {
		return config, fmt.Errorf("manifest.json: config: %w", err)
	}
	config.MediaType = ocispec.MediaTypeImageConfig
	doc := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: config}
	doc.SchemaVersion = 2
	for _, name := range image.Layers {
		layer, err := a.find(name)
		if err != nil {
			return layer, fmt.Errorf("manifest.json: layer: %w", err)
		}
		if layer.MediaType, err = db.layerType(ctx, layer); err != nil {
			return layer, fmt.Errorf("manifest.json: layer %.200q: %w", name, err)
		}
		doc.Layers = append(doc.Layers, layer)
	}
	return db.storeJSON(ctx, doc.MediaType, doc)
}

// find looks a name of the archive up, through one symbolic link at most, as
// Docker's first format has them between layers that are the same.
func (a archived) find(name string) (ocispec.Descriptor, error) {
	if target, ok := a.links[name]; ok {
		name = target
	}
	desc, ok := a.blobs[name]
	if !ok {
		return desc, fmt.Errorf("%w: %w: no entry %.200q in the archive", ErrInvalid, errAbsent, name)
	}
	return desc, nil
}

// layerType tells the media type of a stored layer by its first bytes.
func (db *database) layerType(ctx context.Context, desc ocispec.Descriptor) (string, error) {
	r, err := db.content.ReaderAt(ctx, desc)
	if err != nil {
		return "", err
	}
	defer r.Close()
	head := make([]byte, min(6, desc.Size))
	if _, err := content.NewReader(r).Read(head); err != nil && len(head) > 0 {
		return "", err
	}
	how, err := detect(head)
	if err != nil {
		return "", err
	}
	switch how {
	case gz:
		return ocispec.MediaTypeImageLayerGzip, nil
	case zst:
		return ocispec.MediaTypeImageLayerZstd, nil
	default:
		return ocispec.MediaTypeImageLayer, nil
	}
}

// named is one reference and the descriptors that make it up.
type named struct {
	reference string
	descs     []ocispec.Descriptor
}

// references lists what the archive holds, in its own order. The OCI layout
// counts where both are there: it carries digests.
func (s *Store) references(ctx context.Context, db *database, a archived) ([]named, error) {
	var all []named
	add := func(reference string, desc ocispec.Descriptor) {
		for i := range all {
			if all[i].reference == reference {
				all[i].descs = append(all[i].descs, desc)
				return
			}
		}
		all = append(all, named{reference, []ocispec.Descriptor{desc}})
	}
	switch {
	case a.ociLayout != nil && a.index != nil:
		index, err := parseLayout(a)
		if err != nil {
			return nil, err
		}
		for _, desc := range index.Manifests {
			name := desc.Annotations[cimages.AnnotationImageName]
			if name == "" {
				name = desc.Annotations[ocispec.AnnotationRefName]
			}
			add(name, desc)
		}
	case a.manifests != nil:
		list, err := parseDockerManifest(a.manifests, s.limits)
		if err != nil {
			return nil, err
		}
		for _, image := range list {
			desc, err := db.dockerManifest(ctx, a, image)
			if err != nil {
				return nil, err
			}
			for _, tag := range image.RepoTags {
				add(tag, desc)
			}
			if len(image.RepoTags) == 0 {
				add("", desc)
			}
		}
	default:
		return nil, fmt.Errorf("%w: neither an OCI layout (oci-layout, index.json) nor a Docker archive (manifest.json)", ErrInvalid)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("index.json: %w: it lists no image", ErrInvalid)
	}
	return all, nil
}

func parseLayout(a archived) (document, error) {
	var layout ocispec.ImageLayout
	if err := decodeJSON(a.ociLayout, &layout); err != nil {
		return document{}, fmt.Errorf("oci-layout: %w", err)
	}
	if layout.Version != ocispec.ImageLayoutVersion {
		return document{}, fmt.Errorf("oci-layout: %w: version %.20q, want %s", ErrInvalid, layout.Version, ocispec.ImageLayoutVersion)
	}
	index, err := parseDocument(a.index, ocispec.MediaTypeImageIndex)
	if err != nil {
		return index, fmt.Errorf("index.json: %w", err)
	}
	return index, nil
}
