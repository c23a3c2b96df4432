package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxLevels is how deep a removal goes before it moves a subtree up to its
	// top: each level is an open descriptor, and depth is the attacker's choice.
	maxLevels = 16
	// maxAgain is how often directories are read again after they were emptied
	// once: each time means that somebody put something there meanwhile. Every
	// directory that does go earns one more.
	maxAgain = 1000
	// maxBatch bounds what is remembered of subtrees that were moved up; further
	// ones are found by reading the top again.
	maxBatch = 4096
)

// removal empties one directory. Everything happens by name in a directory that
// is held open, and was reached from the top through real directories: what a
// racer moves away meanwhile takes nothing else into danger.
type removal struct {
	stack  []room
	reader entryReader
	prefix string // of the names of subtrees moved up
	moved  int
	again  int // how many more repeated passes are allowed
}

// room is a directory being emptied.
type room struct {
	fd      int
	name    string
	batch   []dirent
	read    bool // at least once to its end
	removed bool // something went in this pass, so look once more
	left    RemoveError
}

// removeInside empties the directory top and closes it.
func removeInside(ctx context.Context, top int) error {
	r := removal{stack: []room{{fd: top}}, again: maxAgain}
	r.prefix = ".gaol-removing-" + rand.Text()[:12] + "-"
	defer func() {
		for _, room := range r.stack {
			unix.Close(room.fd)
		}
	}()
	if err := unlockDir(top); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, err := r.step()
		if done || err != nil {
			return err
		}
	}
}

// step reads some entries and removes them, up to the first directory that has
// to be entered.
func (r *removal) step() (done bool, err error) {
	here := &r.stack[len(r.stack)-1]
	if len(here.batch) == 0 {
		if here.batch, err = r.reader.next(here.fd); err != nil {
			r.leave(here, ".", err)
		}
		if len(here.batch) == 0 {
			return r.finish(here)
		}
	}
	for len(here.batch) > 0 {
		entry := here.batch[0]
		here.batch = here.batch[1:]
		full, err := unlink(here.fd, entry)
		if err != nil {
			r.leave(here, entry.name, err)
			continue
		}
		here.removed = true
		if full {
			r.enter(here, entry.name)
			return false, nil
		}
	}
	return false, nil
}

// finish is called at the end of a directory: once more if anything was found,
// else back to its parent.
func (r *removal) finish(here *room) (done bool, err error) {
	if here.removed && (!here.read || r.again > 0) {
		if here.read {
			r.again--
		}
		here.read, here.removed, here.left = true, false, RemoveError{}
		_, err := unix.Seek(here.fd, 0, unix.SEEK_SET)
		return false, err
	}
	last := len(r.stack) - 1
	if last == 0 {
		if here.removed && here.left.Count == 0 {
			r.leave(here, ".", unix.ENOTEMPTY)
		}
		if here.left.Count > 0 {
			left := here.left
			return true, &left
		}
		return true, nil
	}
	parent := &r.stack[last-1]
	unix.Close(here.fd)
	r.stack = r.stack[:last]
	if here.left.Count > 0 {
		parent.left.add(here.left)
		return false, nil
	}
	switch err = unlinkat(parent.fd, here.name, unix.AT_REMOVEDIR); {
	case err == nil:
		r.again++
	case errors.Is(err, unix.ENOTDIR): // swapped: the next pass sees what it is now
	default:
		r.leave(parent, here.name, err)
	}
	return false, nil
}

// enter goes into a directory, or moves it up to the top when it lies too deep.
// Moving needs write permission on it, so both open it first.
func (r *removal) enter(here *room, name string) {
	fd, err := openDir(here.fd, name, true)
	if swapped(err) {
		return // the next pass sees what it is now
	}
	if err != nil {
		r.leave(here, name, translate(err))
		return
	}
	if len(r.stack) < maxLevels {
		r.stack = append(r.stack, room{fd: fd, name: name})
		return
	}
	unix.Close(fd)
	if err := r.moveUp(here.fd, name); err != nil {
		r.leave(here, name, fmt.Errorf("move up: %w", err))
	}
}

func (r *removal) moveUp(dir int, name string) error {
	r.moved++
	to := fmt.Sprintf("%s%d", r.prefix, r.moved)
	err := unix.Renameat2(dir, name, r.stack[0].fd, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system has the flag
		err = unix.Renameat(dir, name, r.stack[0].fd, to)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	top := &r.stack[0]
	top.removed = true
	if len(top.batch) < maxBatch {
		top.batch = append(top.batch, dirent{name: to, kind: unix.DT_DIR})
	}
	return nil
}

// leave notes that an entry of a room could not be removed.
func (r *removal) leave(here *room, name string, cause error) {
	var path strings.Builder
	for i := 1; i < len(r.stack); i++ {
		path.WriteString(r.stack[i].name + "/")
	}
	here.left.add(RemoveError{Left: []string{path.String() + name}, Count: 1, Cause: cause})
}
