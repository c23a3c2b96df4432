package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// RemoveEmpty removes the entry rel if it is an empty regular file or an empty
// directory, and nothing else. Nothing being there is no error. Somebody who
// puts another file in its place meanwhile keeps that one, but one who wrote
// into the empty file after it was last looked at loses what he wrote.
//
// Errors: ErrLeftover when it is not empty, ErrSymlink for a link anywhere in
// rel, ErrNotRegular for a special file, ErrReplaced when another one took its
// place, else as ReadFile.
func (d *Dir) RemoveEmpty(rel string) error {
	err := d.hold(func(dir int) error {
		parent, name, err := openParent(dir, rel, unix.O_PATH)
		if err != nil {
			return err
		}
		defer unix.Close(parent)
		id, isDir, err := empty(parent, name)
		switch {
		case err != nil:
			return err
		case isDir:
			return removeEmptyDir(parent, name)
		}
		return removeEmptyFile(parent, name, id)
	})
	if err != nil && !errors.Is(err, ErrNotExist) {
		return fmt.Errorf("remove empty workspace file %s: %w", shorten(rel), err)
	}
	return nil
}

// empty says which file name is, if it is an empty one. Whether a directory is
// empty, the kernel says when it removes it.
func empty(parent int, name string) (id identity, dir bool, err error) {
	var st unix.Statx_t
	if err := statAt(parent, name, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_SIZE, &st); err != nil {
		return identity{}, false, translate(err)
	}
	switch kind := fileType(&st); {
	case kind == unix.S_IFLNK:
		return identity{}, false, ErrSymlink
	case kind == unix.S_IFDIR:
		return identityOf(&st), true, nil
	case kind != unix.S_IFREG:
		return identity{}, false, ErrNotRegular
	case st.Size > 0:
		return identity{}, false, fmt.Errorf("%w: %d bytes in the file", ErrLeftover, st.Size)
	}
	return identityOf(&st), false, nil
}

func removeEmptyDir(parent int, name string) error {
	err := unlinkat(parent, name, unix.AT_REMOVEDIR)
	switch {
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%w in the directory", ErrLeftover)
	case errors.Is(err, unix.ENOTDIR):
		return ErrReplaced
	}
	return err
}

// removeEmptyFile takes the file away from its name before it removes it: there
// is no unlink by descriptor, and under its name it could be exchanged for a
// full one between the look and the unlink.
func removeEmptyFile(parent int, name string, id identity) error {
	aside := ".gaol-empty-" + rand.Text()
	if err := unix.Renameat(parent, name, parent, aside); err != nil {
		return translate(err)
	}
	again, isDir, err := empty(parent, aside)
	if err == nil && !isDir && again == id {
		return unlinkat(parent, aside, 0)
	}
	if err == nil {
		err = ErrReplaced
	}
	// Never over what has appeared under the name since.
	if back := unix.Renameat2(parent, aside, parent, name, unix.RENAME_NOREPLACE); back != nil {
		return fmt.Errorf("%w; put %s back: %w", err, aside, back)
	}
	return err
}
