package workspace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	setID        = unix.S_ISUID | unix.S_ISGID
	capabilities = "security.capability"
)

// StripSetID takes the set-user-id and set-group-id bits, and file
// capabilities, from those regular files among changes that have them, and
// returns how many had. Files that did not change keep theirs. It goes on after
// trouble with one file, and returns all trouble joined.
func (d *Dir) StripSetID(ctx context.Context, changes []Change) (int, error) {
	n := 0
	var trouble []error
	err := d.hold(func(dir int) error {
		for _, change := range changes {
			if change.Kind == Deleted || change.Type != "file" {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			stripped, err := stripFile(dir, change.name())
			if err != nil && len(trouble) < maxNotes {
				trouble = append(trouble, fmt.Errorf("strip %s: %w", shorten(change.name()), err))
			}
			if stripped {
				n++
			}
		}
		return nil
	})
	if err = errors.Join(append(trouble, err)...); err != nil {
		return n, fmt.Errorf("strip set-id bits: %w", err)
	}
	return n, nil
}

// StripSetIDSince does the same for every regular file, at any depth, whose
// ctime is not before since. It is for a run whose listing was truncated, where
// the changes do not name everything.
func (d *Dir) StripSetIDSince(ctx context.Context, since time.Time) (int, error) {
	s := stripper{since: since.Add(-clockTick).UnixNano()}
	w := walk{visitor: &s, mask: unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_CTIME | unix.STATX_INO}
	err := d.hold(func(fd int) error { return w.run(ctx, fd) })
	if err = errors.Join(append(s.trouble, err)...); err != nil {
		return s.n, fmt.Errorf("strip set-id bits: %w", err)
	}
	return s.n, nil
}

// clockTick is by how much the kernel's time of a change may lie behind.
const clockTick = 20 * time.Millisecond

type stripper struct {
	since   int64
	n       int
	trouble []error
}

func (s *stripper) entry(_, dir int, name string, _ int, st *unix.Statx_t) (int, bool, error) {
	if isDir(st) || nanoseconds(st.Ctime) < s.since {
		return 0, true, nil
	}
	stripped, err := stripAt(dir, []string{name})
	if stripped {
		s.n++
	}
	if err != nil {
		s.incomplete(0, fmt.Errorf("strip %s: %w", shorten(name), err))
	}
	return 0, false, nil
}

func (s *stripper) incomplete(_ int, why error) {
	if len(s.trouble) < maxNotes {
		s.trouble = append(s.trouble, why)
	}
}

func stripFile(dir int, rel string) (stripped bool, err error) {
	parts, err := components(rel)
	if err != nil {
		return false, err
	}
	return stripAt(dir, parts)
}

// stripAt works on an O_PATH descriptor: a file of mode 000 can be opened no
// other way, and no name is looked up twice.
func stripAt(dir int, parts []string) (stripped bool, err error) {
	fd, err := openBeneath(dir, parts, unix.O_PATH)
	if errors.Is(err, ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	if err := statAt(fd, "", unix.STATX_TYPE|unix.STATX_MODE, &st); err != nil {
		return false, err
	}
	if fileType(&st) != unix.S_IFREG {
		return false, nil
	}
	if st.Mode&setID != 0 {
		if err := chmodFD(fd, uint32(st.Mode&0o7777&^setID)); err != nil {
			return false, err
		}
		stripped = true
	}
	had, err := dropCapabilities(fd)
	return stripped || had, err
}

// dropCapabilities goes through the magic link, since extended attributes of an
// O_PATH descriptor cannot be reached otherwise before Linux 6.13.
func dropCapabilities(fd int) (had bool, err error) {
	path := "/proc/self/fd/" + strconv.Itoa(fd)
	_, err = unix.Getxattr(path, capabilities, nil)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for capabilities: %w", err)
	}
	if err := unix.Removexattr(path, capabilities); err != nil {
		return false, fmt.Errorf("remove capabilities: %w", err)
	}
	return true, nil
}
