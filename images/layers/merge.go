package layers

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"gaol/images/erofs"
)

const pathMax = 4096

// merge reads layers into a tree and their files' contents into the image.
type merge struct {
	image  *erofs.Writer
	budget *budget
	tree   *tree
}

func newMerge(w *erofs.Writer, limits Limits) *merge {
	b := &budget{limits: limits}
	return &merge{image: w, budget: b, tree: newTree(b)}
}

// apply merges the next layer of the chain.
func (m *merge) apply(ctx context.Context, layer Layer) error {
	m.tree.startLayer()
	return readLayer(ctx, layer, m.budget, func(r io.Reader) error {
		tr := tar.NewReader(r)
		for {
			h, err := tr.Next()
			if err == io.EOF {
				return m.tree.linkWaiting()
			}
			if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
				return fmt.Errorf("read tar: %w", err)
			}
			if err := m.entry(h, tr); err != nil {
				return fmt.Errorf("entry %.200q: %w", h.Name, err)
			}
		}
	})
}

// entry applies one tar entry, whose content is next in r.
func (m *merge) entry(h *tar.Header, r io.Reader) error {
	if err := m.budget.entry(); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if err := m.budget.paths(h.Name, h.Linkname); err != nil {
		return err
	}
	clean := path.Clean("/" + h.Name)
	parent, base := path.Split(clean)
	switch {
	case clean == "/":
		return m.enterRoot(h)
	case isReserved(clean, base):
		return nil
	case strings.HasPrefix(base, whiteoutPrefix):
		return m.tree.whiteOut(parent, base)
	}
	w, err := m.tree.walk(parent, true)
	if err != nil {
		return err
	}
	if h.Typeflag == tar.TypeLink {
		return m.tree.link(&w, base, h.Name, h.Linkname)
	}
	inode, err := m.inode(h, r)
	if err != nil {
		return err
	}
	if old := w.dir().Entries[base]; old != nil && old.IsDir() && inode.IsDir() {
		inode.Entries = old.Entries
		*old = *inode
		m.tree.touch(&w, strings.Clone(base))
		return nil
	}
	return m.tree.put(&w, base, inode)
}

// enterRoot takes what the layer says about the root directory itself.
func (m *merge) enterRoot(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return fmt.Errorf("not a directory in place of the root: %w", ErrEntry)
	}
	inode, err := m.inode(h, nil)
	if err != nil {
		return err
	}
	inode.Mode |= 0o755 // user 1000 has to get in
	inode.Entries = m.tree.root.Entries
	*m.tree.root = *inode
	return nil
}

// inode makes what the entry describes and stores its content.
func (m *merge) inode(h *tar.Header, r io.Reader) (*erofs.Inode, error) {
	const maxID = math.MaxUint32 - 1 // the last one means "no id"
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) > maxID || int64(h.Gid) > maxID {
		return nil, fmt.Errorf("owner %d:%d: %w", h.Uid, h.Gid, ErrEntry)
	}
	i := &erofs.Inode{
		Mode: uint16(h.Mode & 0o7777), UID: uint32(h.Uid), GID: uint32(h.Gid),
		Mtime: h.ModTime.Unix(), MtimeNsec: uint32(h.ModTime.Nanosecond()), //nolint:gosec // below 1e9
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		i.Mode |= erofs.Regular
		if err := m.budget.file(h.Size); err != nil {
			return nil, err
		}
		data, err := m.image.Append(r)
		i.Data = data
		return i, err
	case tar.TypeDir:
		i.Mode |= erofs.Directory
	case tar.TypeSymlink:
		i.Mode |= erofs.Symlink
		if h.Linkname == "" || strings.IndexByte(h.Linkname, 0) >= 0 {
			return nil, fmt.Errorf("symbolic link to %q: %w", h.Linkname, ErrEntry)
		}
		i.Target = strings.Clone(h.Linkname)
		return i, m.budget.name(i.Target)
	case tar.TypeFifo:
		i.Mode |= erofs.FIFO
	case tar.TypeChar:
		i.Mode |= erofs.Character
	case tar.TypeBlock:
		i.Mode |= erofs.Block
	default:
		return nil, fmt.Errorf("type %q: %w", h.Typeflag, ErrEntry)
	}
	return i, nil
}
