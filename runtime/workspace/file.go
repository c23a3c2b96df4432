package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// defaultRead is what ReadFile reads at most when the caller names no maximum.
const defaultRead = 16 << 20

// ReadFile reads the regular file rel, at most max bytes (zero or less: 16 MiB).
// Of a larger file, or one that grows meanwhile, it returns the first max bytes
// together with ErrTooLarge.
//
// Errors: ErrSymlink, ErrEscape, ErrBadName, ErrNotExist, ErrNotDirectory,
// ErrNotRegular, ErrTooLarge, fs.ErrPermission.
func (d *Dir) ReadFile(ctx context.Context, rel string, max int64) ([]byte, error) {
	if max <= 0 {
		max = defaultRead
	}
	var data []byte
	err := d.hold(func(dir int) error {
		fd, err := openRegular(dir, rel)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		data, err = readAll(ctx, fd, max)
		return err
	})
	if err != nil {
		return data, fmt.Errorf("read workspace file %s: %w", shorten(rel), err)
	}
	return data, nil
}

// openRegular looks before it opens: opening a FIFO or a device for reading can
// itself have an effect.
func openRegular(dir int, rel string) (int, error) {
	parts, err := components(rel)
	if err != nil {
		return -1, err
	}
	at, err := openBeneath(dir, parts, unix.O_PATH)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	id, err := regular(at)
	if err != nil {
		return -1, err
	}
	fd, err := openBeneath(dir, parts, unix.O_RDONLY)
	if err != nil {
		return -1, err
	}
	again, err := regular(fd)
	if err == nil && again != id {
		err = ErrReplaced
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func regular(fd int) (identity, error) {
	var st unix.Statx_t
	if err := statAt(fd, "", unix.STATX_TYPE|unix.STATX_INO, &st); err != nil {
		return identity{}, err
	}
	switch fileType(&st) {
	case unix.S_IFREG:
		return identityOf(&st), nil
	case unix.S_IFLNK:
		return identity{}, ErrSymlink
	}
	return identity{}, ErrNotRegular
}

// readAll grows with what arrives, not with the size that the file claims.
func readAll(ctx context.Context, fd int, max int64) ([]byte, error) {
	var data []byte
	buf := make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return data, nil
		}
		if int64(n) > max-int64(len(data)) {
			return append(data, buf[:max-int64(len(data))]...), ErrTooLarge
		}
		data = append(data, buf[:n]...)
	}
}

// Remove removes the entry rel itself: a file, a link (never what it leads to),
// a special file, or an empty directory. Errors: as ReadFile; ErrLeftover for a
// directory that is not empty.
func (d *Dir) Remove(rel string) error {
	err := d.hold(func(dir int) error {
		parent, name, err := openParent(dir, rel, unix.O_PATH)
		if err != nil {
			return err
		}
		defer unix.Close(parent)
		var st unix.Statx_t
		if err := statAt(parent, name, unix.STATX_TYPE, &st); err != nil {
			return translate(err)
		}
		full, err := unlink(parent, dirent{name: name})
		if full {
			return fmt.Errorf("%w in the directory", ErrLeftover)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remove workspace file %s: %w", shorten(rel), err)
	}
	return nil
}

// openParent opens the directory that holds rel and returns rel's last name.
func openParent(dir int, rel string, flags int) (fd int, name string, err error) {
	parts, err := components(rel)
	if err != nil {
		return -1, "", err
	}
	last := len(parts) - 1
	name, parts[last] = parts[last], "."
	fd, err = openBeneath(dir, parts, flags|unix.O_DIRECTORY)
	return fd, name, err
}

// WriteFile puts data at rel, replacing a regular file whole or not at all: a
// reader sees the old file or the new one, and once WriteFile returns nil the
// new one survives a crash. The directory must exist. The file gets exactly the
// permission bits of perm, no set-id bits, and when gaol runs as root the owner
// of the workspace. Errors: as ReadFile.
func (d *Dir) WriteFile(ctx context.Context, rel string, data []byte, perm fs.FileMode) error {
	err := d.hold(func(dir int) error {
		parent, name, err := openParent(dir, rel, unix.O_RDONLY)
		if err != nil {
			return err
		}
		defer unix.Close(parent)
		if err := replaceable(parent, name); err != nil {
			return err
		}
		return d.replace(ctx, parent, name, data, uint32(perm.Perm()))
	})
	if err != nil {
		return fmt.Errorf("write workspace file %s: %w", shorten(rel), err)
	}
	return nil
}

// replaceable refuses what is not a regular file, to be clear rather than safe:
// the rename replaces a link and never follows it.
func replaceable(parent int, name string) error {
	var st unix.Statx_t
	err := statAt(parent, name, unix.STATX_TYPE, &st)
	switch {
	case errors.Is(err, unix.ENOENT) || err == nil && fileType(&st) == unix.S_IFREG:
		return nil
	case err == nil && fileType(&st) == unix.S_IFLNK:
		return ErrSymlink
	case err == nil:
		return ErrNotRegular
	}
	return err
}
