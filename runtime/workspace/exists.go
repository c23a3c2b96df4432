package workspace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Exists reports whether the workspace has an entry called rel, of any type. A
// symbolic link at the end exists, wherever it leads; one before the end is
// ErrSymlink, because what lies behind it is no part of the workspace.
//
// Errors: ErrSymlink, ErrEscape, ErrBadName, ErrNotDirectory for a path through
// a file, fs.ErrPermission. With an error the answer is not known.
func (d *Dir) Exists(rel string) (bool, error) {
	err := d.hold(func(dir int) error {
		parent, name, err := openParent(dir, rel, unix.O_PATH)
		if err != nil {
			return err
		}
		defer unix.Close(parent)
		var st unix.Statx_t
		return translate(statAt(parent, name, unix.STATX_TYPE, &st))
	})
	switch {
	case errors.Is(err, ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for workspace file %s: %w", shorten(rel), err)
	}
	return true, nil
}
