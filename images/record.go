package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	digest "github.com/opencontainers/go-digest"
)

const (
	recordVersion = 1
	recordLimit   = 1 << 20 // bytes
)

// ImageConfig is what remains of an image's config once everything that could
// steer the host is gone.
type ImageConfig struct {
	// Env holds NAME=VALUE pairs. The rule is in env.go.
	Env []string `json:"env,omitempty"`
	// Entrypoint and Cmd are the default command and its arguments.
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	// WorkingDir is absolute and clean; "/workspace" if the image has none.
	WorkingDir string `json:"working_dir"`
	// UID is never 0. GID is 0 for a number that the image has no name for.
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
	// Dropped names what the image asked for and does not get.
	Dropped []string `json:"dropped,omitempty"`
}

// Image is what the store knows about one reference.
type Image struct {
	// Reference is the shortest spelling: "python", not "python:latest".
	Reference string `json:"reference"`
	// Digest is that of the image manifest.
	Digest digest.Digest `json:"digest"`
	// Platform is "os/arch" or "os/arch/variant".
	Platform string `json:"platform"`
	// Created is when this store published the image.
	Created time.Time `json:"created"`
	// ContentSize is the bytes of manifest, config and layers as stored.
	ContentSize int64 `json:"content_size"`
	// RootfsSize is the bytes of the EROFS file.
	RootfsSize int64 `json:"rootfs_size"`
	// RootfsDigest is the hash of the EROFS file.
	RootfsDigest digest.Digest `json:"rootfs_digest"`
	// Absent names platforms that the source's index listed and that were
	// not imported.
	Absent []string `json:"absent,omitempty"`
	// System marks an image of the read-only system store.
	System bool `json:"-"`
}

// record is the file that publishes a reference: with it the image is there,
// without it nothing is.
type record struct {
	Version int    `json:"version"`
	Image   Image  `json:"image"`
	Rootfs  string `json:"rootfs"` // key of the file, lower-case hex
	// ManifestType is the media type of the manifest.
	ManifestType string `json:"manifest_type"`
	// DiffIDs are the layers of the chain, lowest first.
	DiffIDs []digest.Digest `json:"diff_ids"`
	Config  ImageConfig     `json:"config"`
}

// readRecord gives the record of name, fs.ErrNotExist if there is none.
func (p place) readRecord(name string) (record, error) {
	return readRecordFile(filepath.Join(p.records(), recordName(name)), name)
}

func readRecordFile(path, name string) (record, error) {
	var r record
	f, err := os.Open(path) //nolint:gosec // its last part is a hash, or what the directory itself lists
	if err != nil {
		return r, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, recordLimit))
	if err != nil {
		return r, fmt.Errorf("read image record: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read image record %s: %w: %w", path, ErrDamaged, err)
	}
	switch {
	case r.Version != recordVersion:
		return r, fmt.Errorf("read image record %s: %w: version %d, want %d", path, ErrDamaged, r.Version, recordVersion)
	case name != "" && r.Image.Reference != name, filepath.Base(path) != recordName(r.Image.Reference):
		return r, fmt.Errorf("read image record %s: %w: it is for %q", path, ErrDamaged, r.Image.Reference)
	case checkDigest(r.Image.Digest) != nil:
		return r, fmt.Errorf("read image record %s: %w: digest %q", path, ErrDamaged, string(r.Image.Digest))
	case !isKey(r.Rootfs):
		return r, fmt.Errorf("read image record %s: %w: rootfs key %q", path, ErrDamaged, r.Rootfs)
	}
	return r, nil
}

// isKey tells whether a key is safe as a file name.
func isKey(key string) bool {
	return len(key) == 64 && strings.Trim(key, "0123456789abcdef") == ""
}

// allRecords reads every record. A damaged one does not hide the others: it
// is returned among the errors.
func (p place) allRecords() ([]record, []error) {
	entries, err := os.ReadDir(p.records())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{fmt.Errorf("list images: %w", err)}
	}
	var all []record
	var bad []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		r, err := readRecordFile(filepath.Join(p.records(), e.Name()), "")
		switch {
		case errors.Is(err, os.ErrNotExist): // removed since the listing
		case err != nil:
			bad = append(bad, err)
		default:
			r.Image.System = p.readOnly
			all = append(all, r)
		}
	}
	return all, bad
}
