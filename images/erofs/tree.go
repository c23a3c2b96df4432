package erofs

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// ErrTree says that the tree cannot be written: a bad name, a file type that
// the image does not hold, a directory in two places.
var ErrTree = errors.New("tree not fit for erofs")

// tree is the inodes in the order in which they are written: by path, each at
// its first name.
type tree struct {
	order []placed
}

// placed is an inode and what its content needs.
type placed struct {
	*Inode
	parent *Inode
	size   int64 // of the content, of any type
	block  uint32
	inline bool
}

// number checks the tree and gives every inode its serial number, link count
// and place in the metadata area.
func number(root *Inode) (*tree, error) {
	if !root.IsDir() {
		return nil, fmt.Errorf("root with mode %#o: %w", root.Mode, ErrTree)
	}
	t := &tree{}
	if err := t.add(root, root); err != nil {
		return nil, err
	}
	var offset int64 = firstSlot * slotSize
	for n := range t.order {
		p := &t.order[n]
		need := int64(inodeSize)
		if p.inline {
			need += p.size
		}
		// Neither an inode nor its inline content may cross a block's end.
		if offset%BlockSize+need > BlockSize {
			offset = roundUp(offset, BlockSize)
		}
		p.slot = offset / slotSize
		offset = roundUp(offset+need, slotSize)
	}
	return t, nil
}

func (t *tree) add(i, parent *Inode) error {
	if i.ino != 0 {
		if i.IsDir() {
			return fmt.Errorf("directory in two places: %w", ErrTree)
		}
		i.links++
		return nil
	}
	if len(t.order) >= math.MaxUint32-1 {
		return ErrTooLarge
	}
	names := slices.Sorted(maps.Keys(i.Entries))
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
	}
	p := placed{Inode: i, parent: parent}
	if err := p.measure(); err != nil {
		return err
	}
	i.ino, i.links = uint32(len(t.order)+1), 1 //nolint:gosec // checked above
	t.order = append(t.order, p)
	if i.IsDir() {
		i.links++ // its own "."
	}
	for _, name := range names {
		child := i.Entries[name]
		if err := t.add(child, i); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		if child.IsDir() {
			i.links++ // the child's ".."
		}
	}
	return nil
}

// measure finds the size of the content and whether it goes inline.
func (p *placed) measure() error {
	switch p.Type() {
	case Regular:
		p.size, p.block = p.Data.Size, p.Data.block
		return nil
	case FIFO:
		return nil
	case Symlink:
		if len(p.Target) == 0 || len(p.Target) > MaxTarget || strings.IndexByte(p.Target, 0) >= 0 {
			return fmt.Errorf("symlink target of %d bytes: %w", len(p.Target), ErrTree)
		}
		p.size = int64(len(p.Target))
	case Directory:
		p.size = listingSize(p.listing(p.parent))
	default:
		return fmt.Errorf("file type %#o: %w", p.Type(), ErrTree)
	}
	p.inline = p.size <= inlineRoom
	return nil
}

func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "..", len(name) > MaxName, strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("name %.300q: %w", name, ErrTree)
	}
	return nil
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
