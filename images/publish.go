package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	cimages "github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	digest "github.com/opencontainers/go-digest"
)

// publish makes the checked manifest available as name: its rootfs first,
// then the reference in the database, and last the record that Resolve reads.
func (s *Store) publish(ctx context.Context, db *database, name string, m manifest, absent []string, note func(Progress)) (Image, error) {
	file, err := s.rootfs(ctx, db, m, note)
	if err != nil {
		return Image{}, err
	}
	config, err := m.config.imageConfig(file.Passwd, file.Group)
	if err != nil {
		return Image{}, err
	}
	image := Image{
		Reference: name, Digest: m.desc.Digest, Created: time.Now().UTC().Truncate(time.Second),
		Platform:    platforms.FormatAll(platforms.Normalize(m.config.Platform)),
		ContentSize: m.size, RootfsSize: file.Size, RootfsDigest: file.Digest, Absent: absent,
	}
	if m.config.OS == "" || m.config.Architecture == "" {
		image.Platform = platforms.FormatAll(platforms.DefaultSpec())
	}
	r := record{
		Version: recordVersion, Image: image, Rootfs: chainKey(m.config.RootFS.DiffIDs),
		ManifestType: m.desc.MediaType, DiffIDs: m.config.RootFS.DiffIDs, Config: config,
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return Image{}, fmt.Errorf("encode record: %w", err)
	}
	if len(data) >= recordLimit {
		return Image{}, fmt.Errorf("%w: what there is to say about it takes more than %d bytes", ErrLimit, recordLimit)
	}
	if err := db.refer(ctx, name, m); err != nil {
		return Image{}, err
	}
	path := filepath.Join(s.own.records(), recordName(name))
	if err := publishFile(path, func(f *os.File) error { _, err := f.Write(data); return err }); err != nil {
		return Image{}, fmt.Errorf("write record: %w", err)
	}
	return image, nil
}

// refer makes the manifest and all below it reachable under name, so that
// containerd's garbage collection keeps them.
func (db *database) refer(ctx context.Context, name string, m manifest) error {
	children := cimages.SetChildrenLabels(db.content, cimages.ChildrenHandler(db.content))
	if err := cimages.Walk(ctx, children, m.desc); err != nil {
		return fmt.Errorf("label blobs: %w", err)
	}
	image := cimages.Image{Name: name, Target: m.desc}
	image.Target.Annotations = nil
	// Another process may add or remove the same name in between.
	for range 10 {
		_, err := db.images.Update(ctx, image, "target")
		if !errdefs.IsNotFound(err) {
			return err
		}
		if _, err = db.images.Create(ctx, image); !errdefs.IsAlreadyExists(err) {
			return err
		}
	}
	return fmt.Errorf("refer to %q: %w", name, ErrBusy)
}

// chainKey names the rootfs of a chain of layers, made by this converter.
func chainKey(diffIDs []digest.Digest) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n", converter)
	for _, id := range diffIDs {
		fmt.Fprintf(hash, "%s\n", id)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// rootfsFacts is the file beside a rootfs: what was found while making it.
// It is written last, so with it the rootfs is whole.
type rootfsFacts struct {
	Size   int64         `json:"size"`
	Digest digest.Digest `json:"digest"`
	Passwd []byte        `json:"passwd,omitempty"`
	Group  []byte        `json:"group,omitempty"`
}

func (p place) factsFile(key string) string {
	return filepath.Join(p.rootfses(), key+".json")
}

// readFacts gives the facts of a rootfs that is there and whole in size,
// os.ErrNotExist otherwise.
func (p place) readFacts(key string) (rootfsFacts, error) {
	var facts rootfsFacts
	data, err := os.ReadFile(p.factsFile(key))
	if err != nil {
		return facts, err
	}
	info, err := os.Stat(p.rootfsFile(key))
	if err != nil {
		return facts, err
	}
	if json.Unmarshal(data, &facts) != nil || facts.Size != info.Size() {
		return facts, os.ErrNotExist // to be made again
	}
	return facts, nil
}

func (p place) writeFacts(key string, facts rootfsFacts) error {
	data, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("encode rootfs facts: %w", err)
	}
	return publishFile(p.factsFile(key), func(f *os.File) error { _, err := f.Write(data); return err })
}

// rootfs gives the file for the manifest's chain, made now if it is not there.
func (s *Store) rootfs(ctx context.Context, db *database, m manifest, note func(Progress)) (rootfsFacts, error) {
	key := chainKey(m.config.RootFS.DiffIDs)
	release, err := s.lockChain(ctx, key)
	if err != nil {
		return rootfsFacts{}, err
	}
	defer release()
	facts, err := s.own.readFacts(key)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return facts, err
	}
	return s.convert(ctx, db, m, key, note)
}
