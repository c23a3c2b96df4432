package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is an opened workspace directory. All of its methods work on the opened
// directory, even if its path leads elsewhere by now. Close it after use.
type Dir struct {
	file     *os.File
	path     string
	id       identity
	uid, gid uint32
	rules    Rules
}

// Open opens the directory at path, component by component from "/", without
// following a symbolic link. path must be absolute and without "..". It must
// lie beneath one of the allowed roots, and be none of the directories that the
// rules or the system forbid.
//
// Errors: *SymlinkError (ErrSymlink), ErrNotAllowed, ErrNotExist,
// ErrNotDirectory, ErrBadRule, ErrKernel, or fs.ErrPermission.
func Open(path string, rules Rules) (*Dir, error) {
	dir, err := open(path, rules)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", path, err)
	}
	return dir, nil
}

func open(path string, rules Rules) (*Dir, error) {
	found, err := locate(path, rules)
	if err != nil {
		return nil, err
	}
	defer unix.Close(found.fd)
	if !isDir(&found.stat) {
		return nil, ErrNotDirectory
	}
	// "." of the descriptor that was checked: no second lookup of the path.
	fd, err := openAt(found.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0, 0)
	if err != nil {
		return nil, translate(err)
	}
	return &Dir{
		file: os.NewFile(uintptr(fd), found.path), path: found.path, id: identityOf(&found.stat),
		uid: found.stat.Uid, gid: found.stat.Gid, rules: rules,
	}, nil
}

// File returns the opened directory, for mounting it or for RemoveAll. It
// belongs to the Dir: do not close it.
func (d *Dir) File() *os.File { return d.file }

// Path returns the absolute path that was opened, without symbolic links.
func (d *Dir) Path() string { return d.path }

// Owner returns the ids that owned the directory when it was opened.
func (d *Dir) Owner() (uid, gid uint32) { return d.uid, d.gid }

// Close closes the directory.
func (d *Dir) Close() error { return d.file.Close() }

// Recheck reports whether the path still names the opened directory: nil if it
// does, ErrReplaced if another one took its place, or what Open would say.
func (d *Dir) Recheck() error { return recheck(d.path, d.rules, d.id) }

// hold runs use with the directory's descriptor, which stays open meanwhile
// even if another goroutine closes the Dir.
func (d *Dir) hold(use func(fd int) error) error {
	conn, err := d.file.SyscallConn()
	if err != nil {
		return err
	}
	var used error
	if err := conn.Control(func(fd uintptr) { used = use(int(fd)) }); err != nil {
		return err
	}
	return used
}

func recheck(path string, rules Rules, id identity) error {
	found, err := locate(path, rules)
	if err != nil {
		return fmt.Errorf("check %q again: %w", path, err)
	}
	defer unix.Close(found.fd)
	if identityOf(&found.stat) != id {
		return fmt.Errorf("check %q again: %w", path, ErrReplaced)
	}
	return nil
}

// location is what a path leads to: an O_PATH descriptor that the receiver
// closes, and what it is.
type location struct {
	fd   int
	path string
	stat unix.Statx_t
}

func locate(path string, rules Rules) (location, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return location{}, refuse("not an absolute path")
	}
	if slices.Contains(strings.Split(path, "/"), "..") {
		return location{}, refuse("it climbs with \"..\"")
	}
	path = filepath.Clean(path)
	if err := checkSystem(path); err != nil {
		return location{}, err
	}
	bounds, err := newBounds(rules)
	if err != nil {
		return location{}, err
	}
	found, err := descend(path, bounds)
	if err != nil {
		return location{}, err
	}
	err = bounds.checkPath(path)
	if err == nil {
		err = bounds.checkEnd(found.fd, identityOf(&found.stat))
	}
	if err != nil {
		unix.Close(found.fd)
		return location{}, err
	}
	return found, nil
}

// descend walks from "/" to path one component at a time, so that it can say
// which one is a link, and look at each directory that it passes.
func descend(path string, bounds *bounds) (location, error) {
	at := location{path: path}
	var err error
	if at.fd, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return location{}, err
	}
	parts := strings.Split(path[1:], "/")
	for i, part := range parts {
		// O_PATH opens a link itself instead of refusing it, whence the stat.
		next, err := openAt(at.fd, part, unix.O_PATH, 0, 0)
		unix.Close(at.fd)
		if err != nil {
			return location{}, translate(err)
		}
		at.fd = next
		if err := statAt(next, "", unix.STATX_BASIC_STATS, &at.stat); err != nil {
			unix.Close(next)
			return location{}, err
		}
		if fileType(&at.stat) == unix.S_IFLNK {
			err = linkError(path, "/"+strings.Join(parts[:i+1], "/"))
		} else {
			err = bounds.checkStep(identityOf(&at.stat))
		}
		if err != nil {
			unix.Close(next)
			return location{}, err
		}
	}
	return at, nil
}

func linkError(path, link string) error {
	// The text alone uses this; what it says is checked when the user tries it.
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = ""
	}
	return &SymlinkError{Path: path, Link: link, Real: real}
}
