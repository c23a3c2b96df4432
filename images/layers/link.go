package layers

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"gaol/images/erofs"
)

// waitingLink is a hard link to what is not there yet. Its inode stands in the
// tree until the layer's end; it has no type, and the target's name in Target.
type waitingLink struct {
	place
	inode *erofs.Inode
	path  string // as the layer has it
}

func isWaiting(i *erofs.Inode) bool { return i.Mode == 0 }

// link puts a second name for target at the trail's directory.
func (t *tree) link(w *trail, name, entry, target string) error {
	if target == "" {
		return fmt.Errorf("hard link to nothing: %w", ErrEntry)
	}
	inode, err := t.linkTarget(target)
	if err != nil {
		return err
	}
	if inode != nil && !isWaiting(inode) {
		return t.put(w, name, inode)
	}
	for _, s := range []string{entry, target} {
		if err := t.budget.name(s); err != nil {
			return err
		}
	}
	inode = &erofs.Inode{Target: strings.Clone(target)}
	if err := t.put(w, name, inode); err != nil {
		return err
	}
	t.waiting = append(t.waiting, waitingLink{place{w.dir(), strings.Clone(name)}, inode, strings.Clone(entry)})
	return nil
}

// linkTarget finds what a hard link means: nil if it is not there (yet). Its
// last part is not followed, since link(2) does not.
func (t *tree) linkTarget(target string) (*erofs.Inode, error) {
	clean := path.Clean("/" + target)
	parent, name := path.Split(clean)
	w, err := t.walk(parent, false)
	if errors.Is(err, errMissing) || errors.Is(err, errNotFolder) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hard link to %.200q: %w", target, err)
	}
	inode := w.dir().Entries[name]
	if clean == "/" || inode != nil && inode.IsDir() {
		return nil, fmt.Errorf("hard link to the directory %.200q: %w", target, ErrEntry)
	}
	return inode, nil
}

// linkWaiting resolves the links that waited for later entries of the layer.
// Links to links form chains, each of which is followed once.
func (t *tree) linkWaiting() error {
	homes := make(map[*erofs.Inode]waitingLink, len(t.waiting))
	for _, l := range t.waiting {
		homes[l.inode] = l
	}
	for _, first := range t.waiting {
		var chain []waitingLink
		seen := map[*erofs.Inode]struct{}{}
		at := first.inode
		if first.dir.Entries[first.name] != at {
			continue // replaced by a later entry, or resolved
		}
		for isWaiting(at) {
			here := homes[at]
			_, loop := seen[at]
			next, err := t.linkTarget(at.Target)
			if err == nil && (next == nil || loop) {
				err = fmt.Errorf("hard link to %.200q, which is nowhere: %w", at.Target, ErrEntry)
			}
			if err != nil {
				return fmt.Errorf("%.200q: %w", here.path, err)
			}
			seen[at] = struct{}{}
			chain = append(chain, here)
			at = next
		}
		for _, l := range chain {
			l.dir.Entries[l.name] = at
		}
	}
	t.waiting = nil
	return nil
}
