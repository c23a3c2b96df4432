package workspace

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// replace writes data beside name and renames it over: temporary file, fsync,
// rename, fsync of the directory.
func (d *Dir) replace(ctx context.Context, parent int, name string, data []byte, perm uint32) (err error) {
	temp := ".gaol-write-" + rand.Text()
	fd, err := openAt(parent, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600, 0)
	if err != nil {
		return fmt.Errorf("make temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unlinkat(parent, temp, 0)
		}
	}()
	err = d.fill(ctx, fd, data, perm)
	if closed := unix.Close(fd); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	if err := unix.Renameat(parent, temp, parent, name); err != nil {
		return fmt.Errorf("rename temporary file: %w", err)
	}
	if err := unix.Fsync(parent); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

func (d *Dir) fill(ctx context.Context, fd int, data []byte, perm uint32) error {
	for len(data) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := unix.Write(fd, data[:min(len(data), 1<<20)])
		if err != nil && err != unix.EINTR {
			return err
		}
		data = data[max(n, 0):]
	}
	if os.Geteuid() == 0 {
		if err := unix.Fchown(fd, int(d.uid), int(d.gid)); err != nil {
			return err
		}
	}
	// After fchown: the umask has no say, and chown may clear bits.
	if err := unix.Fchmod(fd, perm); err != nil {
		return err
	}
	return unix.Fsync(fd)
}
