package workspace

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// resolveFlags confine every lookup. RESOLVE_NO_SYMLINKS alone would do for
// magic links too; naming both keeps that true should the kernel's rule change.
const resolveFlags = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// maxLookup is the longest path handed to the kernel in one call; PATH_MAX is
// 4096 with its final NUL.
const maxLookup = 4000

// asDir after the name of a directory makes a link there one in the middle of
// the path: ELOOP tells the truth, while O_DIRECTORY alone says ENOTDIR.
const asDir = "/."

// identity tells two files of one moment apart.
type identity struct{ dev, ino uint64 }

func identityOf(st *unix.Statx_t) identity {
	return identity{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}
}

func fileType(st *unix.Statx_t) uint16 { return st.Mode & unix.S_IFMT }

func isDir(st *unix.Statx_t) bool { return fileType(st) == unix.S_IFDIR }

// statAt looks at name in dir without following it, opening it or mounting
// anything. An empty name means dir itself.
func statAt(dir int, name string, mask int, st *unix.Statx_t) error {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	for {
		if err := unix.Statx(dir, name, flags, mask, st); err != unix.EINTR {
			return err
		}
	}
}

// openAt opens path beneath dir. It never blocks, never follows a link, never
// becomes a controlling terminal. extra adds RESOLVE_ flags.
func openAt(dir int, path string, flags int, mode uint32, extra uint64) (int, error) {
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	how := unix.OpenHow{Flags: uint64(flags), Mode: uint64(mode), Resolve: resolveFlags | extra}
	for tries := 0; ; tries++ {
		fd, err := unix.Openat2(dir, path, &how)
		if err == unix.EINTR || err == unix.EAGAIN && tries < 100 {
			continue
		}
		return fd, err
	}
}

// components splits a name relative to a workspace and refuses one that could
// mean anything outside. "a//b/./c/" is a, b, c.
func components(rel string) ([]string, error) {
	if strings.ContainsRune(rel, 0) {
		return nil, fmt.Errorf("%w: NUL byte", ErrBadName)
	}
	if strings.HasPrefix(rel, "/") {
		return nil, fmt.Errorf("%w: absolute", ErrEscape)
	}
	var parts []string
	for part := range strings.SplitSeq(rel, "/") {
		switch part {
		case "", ".":
		case "..":
			return nil, fmt.Errorf("%w: parent directory", ErrEscape)
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrBadName)
	}
	return parts, nil
}

// openBeneath opens the file that parts lead to from dir, in as many steps as
// the kernel's limit on one path asks for.
func openBeneath(dir int, parts []string, flags int) (int, error) {
	at := dir
	for {
		step, rest := firstStep(parts)
		if len(rest) == 0 {
			fd, err := openAt(at, step, flags, 0, 0)
			closeUnless(at, dir)
			return fd, translate(err)
		}
		next, err := openAt(at, step+asDir, unix.O_PATH|unix.O_DIRECTORY, 0, 0)
		closeUnless(at, dir)
		if err != nil {
			return -1, translate(err)
		}
		at, parts = next, rest
	}
}

func firstStep(parts []string) (step string, rest []string) {
	size, n := len(parts[0]), 1
	for n < len(parts) && size+1+len(parts[n]) <= maxLookup {
		size += 1 + len(parts[n])
		n++
	}
	return strings.Join(parts[:n], "/"), parts[n:]
}

func closeUnless(fd, keep int) {
	if fd != keep {
		unix.Close(fd)
	}
}
