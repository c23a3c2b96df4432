package layers

import (
	"errors"
	"fmt"
	"strings"

	"gaol/images/erofs"
)

// Names with a meaning of their own, from the OCI image specification's
// "Representing Changes".
const (
	whiteoutPrefix = ".wh."
	reservedPrefix = ".wh..wh."
	opaqueMarker   = ".wh..wh..opq"
)

// isReserved reports whether path holds a name that AUFS used for itself.
func isReserved(path, base string) bool {
	return base != opaqueMarker && strings.Contains(path, "/"+reservedPrefix)
}

// whiteOut applies the whiteout or opaque marker base in the directory parent.
func (t *tree) whiteOut(parent, base string) error {
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if name == "" {
		return nil
	}
	if name == "." || name == ".." {
		return fmt.Errorf("whiteout of %q: %w", name, ErrEntry)
	}
	w, err := t.walk(parent, false)
	if w.links > 0 {
		return fmt.Errorf("whiteout through a symbolic link: %w", ErrEntry)
	}
	if errors.Is(err, errMissing) || errors.Is(err, errNotFolder) {
		return nil
	}
	if err != nil {
		return err
	}
	if base == opaqueMarker {
		t.hideBelow(w.dir())
	} else {
		t.hide(w.dir(), name)
	}
	return nil
}

// hide removes what lower layers hold at the place.
func (t *tree) hide(dir *erofs.Inode, name string) {
	inode := dir.Entries[name]
	switch {
	case inode == nil:
	case !t.isTouched(place{dir, name}):
		delete(dir.Entries, name)
	case inode.IsDir():
		t.hideBelow(inode)
	}
}

// hideBelow removes all that lower layers hold in the directory. Whatever comes
// later is of this layer, so once is enough; that also bounds the time which a
// layer of nothing but markers can take.
func (t *tree) hideBelow(dir *erofs.Inode) {
	if _, done := t.opaque[dir]; done || t.layer <= 1 {
		return
	}
	t.opaque[dir] = struct{}{}
	for name := range dir.Entries {
		t.hide(dir, name)
	}
}
