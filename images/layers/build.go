package layers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"gaol/images/erofs"
)

// ErrEntry says that a layer holds an entry that cannot be applied: a bad name,
// a parent that is a file, a hard link to nothing, an unknown type.
var ErrEntry = errors.New("layer entry refused")

// Layer is one layer of the chain, lowest first.
type Layer struct {
	// Open returns the layer's uncompressed tar stream. Build reads it to the
	// end, trailing bytes included, and closes it; an error from Read or Close
	// (a wrong digest, say) fails the build.
	Open func() (io.ReadCloser, error)
}

// Config is how to build. The zero value is safe.
type Config struct {
	Limits Limits
	// UUID identifies the file system, for tools; a piece of the chain's digest
	// keeps the image reproducible. gVisor ignores it.
	UUID [16]byte
}

// Info is what was built.
type Info struct {
	// Entries counts the names in the tree, directories included, and Bytes the
	// contents of the regular files, hidden ones included.
	Entries int
	Bytes   int64
	// Devices counts the device nodes that were left out.
	Devices int
	// Passwd and Group are the contents of the tree's /etc/passwd and
	// /etc/group, nil if there is no such file. They are the image author's
	// words: parse them as outside data.
	Passwd, Group []byte
}

// Build merges the chain and writes the tree to out, which must be open for
// reading and writing. What out held is gone. After an error it holds no valid
// image. The caller syncs, closes and publishes it. The same chain, config and
// version of this package give the same bytes.
//
// Errors wrap [ErrLimit], [ErrEntry], tar.ErrHeader and what Layer.Open's
// streams return.
func Build(ctx context.Context, out *os.File, chain []Layer, cfg Config) (info Info, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Truncate(0))
		}
	}()
	w, err := erofs.Create(out)
	if err != nil {
		return Info{}, err
	}
	limits := cfg.Limits.orDefault()
	if len(chain) > limits.Layers {
		return Info{}, exceeded("layers", int64(limits.Layers))
	}
	m := newMerge(w, limits)
	for n, layer := range chain {
		if err := m.apply(ctx, layer); err != nil {
			return Info{}, fmt.Errorf("apply layer %d of %d: %w", n+1, len(chain), err)
		}
	}
	if info, err = m.complete(); err != nil {
		return Info{}, fmt.Errorf("complete image: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	if err := w.Finish(m.tree.root, erofs.Label{UUID: cfg.UUID}); err != nil {
		return Info{}, err
	}
	return info, nil
}
