package layers

import (
	"errors"
	"fmt"
	"strings"

	"gaol/images/erofs"
)

// tree is the merged image so far. Directories and their names are looked up
// here and never on the host, so no name leads anywhere else.
type tree struct {
	root   *erofs.Inode
	budget *budget
	layer  int
	// touched holds what the current layer has put in place, which its own
	// whiteouts leave alone. A place in it has its parents in it too.
	touched map[place]struct{}
	// opaque holds the directories whose lower entries are hidden already.
	opaque map[*erofs.Inode]struct{}
	// waiting holds hard links whose target has not come yet.
	waiting []waitingLink
}

// place is a name in a directory.
type place struct {
	dir  *erofs.Inode
	name string
}

func newTree(b *budget) *tree {
	return &tree{root: newDirectory(0o755), budget: b}
}

func newDirectory(mode uint16) *erofs.Inode {
	return &erofs.Inode{Mode: erofs.Directory | mode}
}

func (t *tree) startLayer() {
	t.layer++
	t.touched = map[place]struct{}{}
	t.opaque = map[*erofs.Inode]struct{}{}
	t.waiting = nil
}

// trail is a directory with the way to it from the root, links resolved.
type trail struct {
	dirs  []*erofs.Inode // the root first, the directory last
	names []string       // one fewer than dirs
	links int            // symbolic links passed
}

func (w *trail) dir() *erofs.Inode { return w.dirs[len(w.dirs)-1] }

func (w *trail) path() string { return "/" + strings.Join(w.names, "/") }

const (
	maxLinks = 40   // as Linux
	maxSteps = 2048 // bounds the time that one entry can take
)

var (
	errMissing   = errors.New("no such directory")
	errNotFolder = fmt.Errorf("parent is not a directory: %w", ErrEntry)
)

// walk finds the directory that path names, with the image's root as the root
// and symbolic links resolved. With create, directories that are missing are
// made; without, errMissing is returned, and the trail tells how far it went.
func (t *tree) walk(path string, create bool) (trail, error) {
	w := trail{dirs: []*erofs.Inode{t.root}}
	for steps := 0; path != ""; steps++ {
		if steps > maxSteps {
			return w, fmt.Errorf("path takes more than %d steps: %w", maxSteps, ErrEntry)
		}
		var name string
		name, path, _ = strings.Cut(path, "/")
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			if last := len(w.names) - 1; last >= 0 {
				w.dirs, w.names = w.dirs[:last+1], w.names[:last]
			}
			continue
		}
		next := w.dir().Entries[name]
		if next == nil {
			if !create {
				return w, errMissing
			}
			var err error
			if next, err = t.makeDirectory(&w, name); err != nil {
				return w, err
			}
		}
		switch next.Type() {
		case erofs.Directory:
			w.dirs, w.names = append(w.dirs, next), append(w.names, name)
		case erofs.Symlink:
			if w.links++; w.links > maxLinks || len(path)+len(next.Target) >= pathMax {
				return w, fmt.Errorf("too many symbolic links: %w", ErrEntry)
			}
			if next.Target[0] == '/' {
				w.dirs, w.names = w.dirs[:1], nil
			}
			path = next.Target + "/" + path
		default:
			return w, errNotFolder
		}
	}
	return w, nil
}

// makeDirectory makes a directory that no entry has described.
func (t *tree) makeDirectory(w *trail, name string) (*erofs.Inode, error) {
	if err := t.budget.entry(); err != nil {
		return nil, err
	}
	dir := newDirectory(0o755)
	return dir, t.put(w, name, dir)
}

// put places inode under name in the trail's directory, over what is there.
func (t *tree) put(w *trail, name string, inode *erofs.Inode) error {
	switch {
	case len(name) > erofs.MaxName:
		return fmt.Errorf("name of %d bytes: %w", len(name), ErrEntry)
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("name %q: %w", name, ErrEntry)
	case strings.HasPrefix(name, whiteoutPrefix):
		return fmt.Errorf("name %q is kept for whiteouts: %w", name, ErrEntry)
	case len(w.dirs) > t.budget.limits.Depth:
		return exceeded("directories deep", int64(t.budget.limits.Depth))
	}
	if err := t.budget.name(name); err != nil {
		return err
	}
	// A tar reader's names share one large string with everything beside them.
	name = strings.Clone(name)
	dir := w.dir()
	if dir.Entries == nil {
		dir.Entries = map[string]*erofs.Inode{}
	}
	dir.Entries[name] = inode
	t.touch(w, name)
	return nil
}

// touch notes that the current layer has said something about a place.
func (t *tree) touch(w *trail, name string) {
	if t.layer <= 1 {
		return // nothing lies below the first layer
	}
	at := place{w.dir(), name}
	for n := len(w.names); ; n-- {
		if _, known := t.touched[at]; known {
			return
		}
		t.touched[at] = struct{}{}
		if n == 0 {
			return
		}
		at = place{w.dirs[n-1], strings.Clone(w.names[n-1])}
	}
}

func (t *tree) isTouched(at place) bool {
	_, known := t.touched[at]
	return known || t.layer <= 1
}
