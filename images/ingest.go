package images

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// archived is what an archive held: its descriptions, and its blobs by name,
// all of them in the content store.
type archived struct {
	ociLayout []byte // oci-layout
	index     []byte // index.json
	manifests []byte // Docker's manifest.json
	blobs     map[string]ocispec.Descriptor
	links     map[string]string
}

// ingest stores the files of src as blobs. Whether they are what an index
// says is judged later; a blob that its own name contradicts stops here.
func (s *Store) ingest(ctx context.Context, db *database, src source, note func(Progress)) (archived, error) {
	a := archived{blobs: map[string]ocispec.Descriptor{}, links: map[string]string{}}
	var total int64
	err := src(ctx, s.limits, func(e entry) error {
		if e.body == nil {
			a.links[e.name] = e.target
			return nil
		}
		if total += e.size; total > s.limits.Bytes {
			return fmt.Errorf("%w: its files have more than %d bytes", ErrLimit, s.limits.Bytes)
		}
		switch e.name {
		case "oci-layout":
			return readDescription(e, s.limits, &a.ociLayout)
		case "index.json":
			return readDescription(e, s.limits, &a.index)
		case "manifest.json":
			return readDescription(e, s.limits, &a.manifests)
		}
		switch path.Base(e.name) { // leftovers of Docker's first format
		case "VERSION", "json", "repositories":
			return nil
		}
		desc, err := db.storeBlob(ctx, e.body, digestOfName(e.name), e.size)
		if err != nil {
			return fmt.Errorf("store %.200q: %w", e.name, err)
		}
		if before, again := a.blobs[e.name]; again && before.Digest != desc.Digest {
			return fmt.Errorf("%w: %.200q is in the archive twice and differs", ErrInvalid, e.name)
		}
		a.blobs[e.name] = desc
		note(Progress{Stage: "read", Item: e.name, Done: total})
		return nil
	})
	return a, err
}

func readDescription(e entry, limits Limits, into *[]byte) error {
	if *into != nil {
		return fmt.Errorf("%w: %q is in the archive twice", ErrInvalid, e.name)
	}
	if e.size > limits.JSON {
		return fmt.Errorf("%w: %q has %d bytes, more than %d", ErrLimit, e.name, e.size, limits.JSON)
	}
	data, err := io.ReadAll(e.body)
	if err != nil {
		return fmt.Errorf("read %q: %w", e.name, err)
	}
	*into = data
	return nil
}

// digestOfName gives the digest that a name promises, "" if it promises none:
// blobs/sha256/<hex>, and <hex>.json in Docker's archives.
func digestOfName(name string) digest.Digest {
	hex := strings.TrimSuffix(name, ".json")
	if rest, ok := strings.CutPrefix(name, "blobs/sha256/"); ok {
		hex = rest
	}
	if !isKey(hex) {
		return ""
	}
	return digest.NewDigestFromEncoded(digest.SHA256, hex)
}

// unknownSize is for streams whose end decides.
const unknownSize = -1

// storeBlob copies r into the content store. It must have size bytes and,
// unless want is "", that digest. A blob that is there already is read all
// the same: a wrong copy is an error, not a coincidence.
func (db *database) storeBlob(ctx context.Context, r io.Reader, want digest.Digest, size int64) (desc ocispec.Descriptor, err error) {
	hash := sha256.New()
	count := &counter{r: io.TeeReader(r, hash)}
	// The name is ours alone: containerd's locks for it end at this process.
	ref := "gaol-" + rand.Text()
	promised := ocispec.Descriptor{Digest: want, Size: max(size, 0)}
	w, err := db.content.Writer(ctx, content.WithRef(ref), content.WithDescriptor(promised))
	if err != nil && !errdefs.IsAlreadyExists(err) {
		return desc, err
	}
	out := io.Discard
	if err == nil {
		out = w
		defer func() {
			w.Close()
			if err != nil {
				abort := db.content.Abort(context.WithoutCancel(ctx), ref)
				if !errdefs.IsNotFound(abort) {
					err = errors.Join(err, abort)
				}
			}
		}()
		if err := w.Truncate(0); err != nil {
			return desc, err
		}
	}
	if _, err := io.CopyBuffer(out, struct{ io.Reader }{count}, make([]byte, 256<<10)); err != nil {
		return desc, asInvalid(err)
	}
	got := digest.NewDigest(digest.SHA256, hash)
	if want != "" && got != want {
		return desc, fmt.Errorf("%w: its digest is %s, not %s", ErrInvalid, got, want)
	}
	if size != unknownSize && count.n != size {
		return desc, fmt.Errorf("%w: it has %d bytes, not %d", ErrInvalid, count.n, size)
	}
	if w != nil {
		if err := w.Commit(ctx, count.n, got); err != nil && !errdefs.IsAlreadyExists(err) {
			return desc, err
		}
	}
	return ocispec.Descriptor{Digest: got, Size: count.n}, nil
}

// storeJSON stores a document that we write ourselves.
func (db *database) storeJSON(ctx context.Context, mediaType string, v any) (ocispec.Descriptor, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("encode %s: %w", mediaType, err)
	}
	desc, err := db.storeBlob(ctx, bytes.NewReader(data), digest.FromBytes(data), int64(len(data)))
	desc.MediaType = mediaType
	return desc, err
}

// readJSON reads a stored document of at most limits.JSON bytes, after its
// digest and size were found to be those of desc.
func (db *database) readJSON(ctx context.Context, desc ocispec.Descriptor, limits Limits) ([]byte, error) {
	if err := db.check(ctx, desc); err != nil {
		return nil, err
	}
	if desc.Size > limits.JSON {
		return nil, fmt.Errorf("%w: %s has %d bytes of JSON, more than %d", ErrLimit, desc.Digest, desc.Size, limits.JSON)
	}
	data, err := content.ReadBlob(ctx, db.content, desc)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", desc.Digest, err)
	}
	return data, nil
}

// check tells whether desc is well formed and its blob there with that size.
// The digest was verified when the blob was stored.
func (db *database) check(ctx context.Context, desc ocispec.Descriptor) error {
	if err := checkDigest(desc.Digest); err != nil {
		return err
	}
	info, err := db.content.Info(ctx, desc.Digest)
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %w: %s", ErrInvalid, errAbsent, desc.Digest)
	}
	if err != nil {
		return fmt.Errorf("look up %s: %w", desc.Digest, err)
	}
	if info.Size != desc.Size {
		return fmt.Errorf("%w: %s has %d bytes, its descriptor says %d", ErrInvalid, desc.Digest, info.Size, desc.Size)
	}
	return nil
}

// errAbsent means that an archive names a blob and does not hold it.
var errAbsent = errors.New("blob is missing")
