package workspace

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrSymlink: a component of the path is a symbolic link. None is followed.
	ErrSymlink = errors.New("symbolic link in path")
	// ErrNotDirectory: a directory was needed and something else is there.
	ErrNotDirectory = errors.New("not a directory")
	// ErrNotRegular: a regular file was needed and something else is there.
	ErrNotRegular = errors.New("not a regular file")
	// ErrNotAllowed: the rules keep this path from being a workspace or a source.
	ErrNotAllowed = errors.New("path is not allowed")
	// ErrBadRule: a rule itself cannot be applied, for instance a relative path.
	ErrBadRule = errors.New("rule is not usable")
	// ErrNotExist: nothing is there. It is fs.ErrNotExist.
	ErrNotExist = fs.ErrNotExist
	// ErrEscape: a name is absolute, climbs with "..", or crosses a mount.
	ErrEscape = errors.New("path escapes workspace")
	// ErrBadName: a name is empty or holds a NUL byte.
	ErrBadName = errors.New("name is not usable")
	// ErrTooLarge: a file is larger than the caller's maximum.
	ErrTooLarge = errors.New("file is too large")
	// ErrReplaced: a path names another file or directory than it did before.
	ErrReplaced = errors.New("path was replaced")
	// ErrLeftover: a removal could not remove everything; see RemoveError.
	ErrLeftover = errors.New("entries are left")
	// ErrKernel: the kernel lacks openat2 (Linux 5.6), or a filter denies it.
	ErrKernel = errors.New("openat2 is not available")
)

// SymlinkError says which component of a path is a symbolic link, and where the
// whole path leads, so that the user can name that instead.
type SymlinkError struct {
	Path string // as given
	Link string // the first component that is a link
	Real string // where Path leads; empty when that cannot be found out
}

func (e *SymlinkError) Error() string {
	if e.Real == "" {
		return fmt.Sprintf("%q is a symbolic link that leads nowhere; give the real path", e.Link)
	}
	return fmt.Sprintf("%q is a symbolic link; give the real path %q", e.Link, e.Real)
}

// Unwrap makes errors.Is(err, ErrSymlink) true.
func (e *SymlinkError) Unwrap() error { return ErrSymlink }

// translate turns the errno of a confined open into the error that callers test
// for. Others stay as they are, so that errors.Is(err, fs.ErrPermission) works.
func translate(err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return ErrSymlink
	case errors.Is(err, unix.ENOENT):
		return ErrNotExist
	case errors.Is(err, unix.ENOTDIR):
		return ErrNotDirectory
	case errors.Is(err, unix.EXDEV):
		return ErrEscape
	case errors.Is(err, unix.ENXIO):
		return ErrNotRegular
	case errors.Is(err, unix.ENOSYS):
		return ErrKernel
	}
	return err
}
