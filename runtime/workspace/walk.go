package workspace

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// keepOpen is how many levels of a walk keep their directory open. A deeper
// one is closed while its children are visited and reached again by "..",
// which counts only if it leads to the very same directory.
const keepOpen = 20

// errStop ends a walk early without being an error of it.
var errStop = errors.New("the rest is left out")

// visitor is told what a walk finds. Directories are known by the number that
// entry gave them; the top is number 0.
type visitor interface {
	// entry looks at one name in the open directory dir; st is valid until it
	// returns. enter asks for the inside of a directory, known as self from then
	// on. errStop ends the walk.
	entry(parent, dir int, name string, depth int, st *unix.Statx_t) (self int, enter bool, err error)
	// incomplete says that not all of a directory could be read.
	incomplete(self int, why error)
}

// walk visits a tree that something else may be changing. It opens directories
// only, holds at most keepOpen+2 descriptors whatever the depth, and remembers
// no more than the directories which the visitor asked to enter.
type walk struct {
	visitor
	mask   int  // STATX_ fields the visitor needs
	unlock bool // give the owner access to directories that lack it
	stack  []level
	reader entryReader
	stat   unix.Statx_t // of the entry being looked at, made once for all
}

type level struct {
	fd    int // -1 while closed
	id    identity
	self  int
	inner []innerDir // still to be entered
	mode  int        // to be put back when the directory is left; -1 for none
}

type innerDir struct {
	name string
	id   identity
	self int
}

// run walks the directory fd, which stays open and keeps its offset.
func (w *walk) run(ctx context.Context, fd int) error {
	defer w.closeAll()
	top, err := reopenTop(fd)
	if err != nil {
		return err
	}
	w.stack = append(w.stack, level{fd: top, mode: -1})
	if err := w.list(ctx); err != nil {
		return w.end(err)
	}
	for len(w.stack) > 0 {
		here := &w.stack[len(w.stack)-1]
		if len(here.inner) == 0 {
			w.climb()
			continue
		}
		inner := here.inner[0]
		here.inner = here.inner[1:]
		if err := w.enter(inner); err != nil {
			if !errors.Is(err, unix.ENOENT) { // gone meanwhile: nothing is missing
				w.incomplete(inner.self, translate(err))
			}
			continue
		}
		if err := w.list(ctx); err != nil {
			return w.end(err)
		}
	}
	return nil
}

// end marks what will not be visited any more.
func (w *walk) end(err error) error {
	for _, level := range w.stack {
		for _, inner := range level.inner {
			w.incomplete(inner.self, err)
		}
	}
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// list reads the directory on top of the stack to its end.
func (w *walk) list(ctx context.Context) error {
	here := &w.stack[len(w.stack)-1]
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := w.reader.next(here.fd)
		if err != nil {
			w.incomplete(here.self, err)
			return nil
		}
		if len(entries) == 0 {
			return nil
		}
		for _, entry := range entries {
			if err := w.look(here, entry.name); err != nil {
				w.incomplete(here.self, err)
				return err
			}
		}
	}
}

func (w *walk) look(here *level, name string) error {
	st := &w.stat
	if err := statAt(here.fd, name, w.mask, st); err != nil {
		if !errors.Is(err, unix.ENOENT) {
			w.incomplete(here.self, err)
		}
		return nil
	}
	self, enter, err := w.entry(here.self, here.fd, name, len(w.stack), st)
	if err == nil && enter && isDir(st) {
		here.inner = append(here.inner, innerDir{name, identityOf(st), self})
	}
	return err
}

// enter opens a directory of the one on top of the stack and puts it there.
func (w *walk) enter(inner innerDir) error {
	parent := &w.stack[len(w.stack)-1]
	fd, mode, err := w.open(parent.fd, inner.name)
	if err != nil {
		return err
	}
	var st unix.Statx_t
	if err = statAt(fd, "", unix.STATX_INO, &st); err == nil && identityOf(&st) != inner.id {
		err = ErrReplaced
	}
	if err != nil {
		leave(fd, mode)
		return err
	}
	if len(w.stack) > keepOpen {
		unix.Close(parent.fd)
		parent.fd = -1
	}
	w.stack = append(w.stack, level{fd: fd, id: inner.id, self: inner.self, mode: mode})
	return nil
}

func (w *walk) closeAll() {
	for _, level := range w.stack {
		if level.fd >= 0 {
			leave(level.fd, level.mode)
		}
	}
	w.stack = nil
}
