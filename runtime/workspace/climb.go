package workspace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// climb leaves the directory on top of the stack for its parent. Where that
// cannot be reached again, because a racer moved something, the walk goes on
// from the deepest directory that is still open.
func (w *walk) climb() {
	last := len(w.stack) - 1
	child, mode := w.stack[last].fd, w.stack[last].mode
	w.stack = w.stack[:last]
	defer leave(child, mode)
	if last == 0 || w.stack[last-1].fd >= 0 {
		return
	}
	parent := &w.stack[last-1]
	err := reopenParent(child, parent)
	if err == nil {
		return
	}
	for w.stack[len(w.stack)-1].fd < 0 {
		lost := w.stack[len(w.stack)-1]
		w.incomplete(lost.self, err)
		for _, inner := range lost.inner {
			w.incomplete(inner.self, err)
		}
		w.stack = w.stack[:len(w.stack)-1]
	}
}

// reopenParent opens ".." of child if, and only if, it is the directory that
// the walk came from. An O_PATH descriptor gives no access before that is known.
func reopenParent(child int, parent *level) error {
	up, err := unix.Openat(child, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("climb to parent: %w", err)
	}
	defer unix.Close(up)
	var st unix.Statx_t
	if err := statAt(up, "", unix.STATX_INO, &st); err != nil {
		return fmt.Errorf("climb to parent: %w", err)
	}
	if identityOf(&st) != parent.id {
		return fmt.Errorf("climb to parent: %w", ErrReplaced)
	}
	parent.fd, err = openAt(up, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0, 0)
	if err != nil {
		parent.fd = -1
		return fmt.Errorf("climb to parent: %w", err)
	}
	return nil
}
