package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// entry is one file of an archive or layout. Its name is only ever compared,
// never joined to a directory of the host.
type entry struct {
	name string
	size int64
	// target is the entry that a link leads to; then body is nil.
	target string
	body   io.Reader
}

// source hands out its entries one after the other. A body is valid until
// visit returns.
type source func(ctx context.Context, limits Limits, visit func(entry) error) error

// tarSource reads an archive as a stream: plain, gzip or zstd.
func tarSource(r io.Reader) source {
	return func(ctx context.Context, limits Limits, visit func(entry) error) error {
		b := &budget{what: "the archive", limits: limits}
		unpacked, err := decompress(ctx, r, b)
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		defer unpacked.Close()
		archive := tar.NewReader(unpacked)
		for n := 0; ; n++ {
			header, err := archive.Next()
			if err == io.EOF {
				if n == 0 {
					return fmt.Errorf("read archive: %w: it is empty", ErrInvalid)
				}
				return nil
			}
			if err != nil {
				return fmt.Errorf("read archive: %w", asInvalid(err))
			}
			if n >= limits.Files {
				return fmt.Errorf("read archive: %w: more than %d entries", ErrLimit, limits.Files)
			}
			if header.Size > limits.Bytes-b.used {
				return fmt.Errorf("read archive: %w: %.200q has %d bytes, more than the %d that remain",
					ErrLimit, header.Name, header.Size, limits.Bytes-b.used)
			}
			e := entry{name: path.Clean(header.Name), size: header.Size, body: archive}
			switch header.Typeflag {
			case tar.TypeReg:
			case tar.TypeSymlink:
				e.target, e.body = path.Join(path.Dir(e.name), header.Linkname), nil //nolint:gosec // the name of another entry, never of a file
			case tar.TypeLink:
				e.target, e.body = path.Clean(header.Linkname), nil
			default:
				continue
			}
			if err := visit(e); err != nil {
				return err
			}
		}
	}
}

// asInvalid marks the tar reader's own complaints.
func asInvalid(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}

// directorySource reads an OCI layout or an unpacked Docker archive. Nothing
// outside the directory is opened, whatever its links say.
func directorySource(dir string) source {
	return func(ctx context.Context, limits Limits, visit func(entry) error) error {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return fmt.Errorf("read layout: %w", err)
		}
		defer root.Close()
		n := 0
		err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			if n++; n > limits.Files {
				return fmt.Errorf("%w: more than %d entries", ErrLimit, limits.Files)
			}
			switch d.Type() {
			case fs.ModeSymlink:
				target, err := root.Readlink(name)
				if err != nil {
					return err
				}
				return visit(entry{name: name, target: path.Join(path.Dir(name), target)})
			case 0:
				return visitFile(root, name, visit)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read layout: %w", err)
		}
		return nil
	}
}

// visitFile opens one file without waiting, since a FIFO may have taken its
// place.
func visitFile(root *os.Root, name string, visit func(entry) error) error {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %q is no regular file", ErrInvalid, name)
	}
	return visit(entry{name: name, size: info.Size(), body: io.LimitReader(f, info.Size())})
}
