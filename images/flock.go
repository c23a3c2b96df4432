package images

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// flock opens the lock file and takes the lock, shared or exclusive, waiting
// at most wait. The lock ends with the returned file or with the process,
// whatever way that ends. 0 tries once.
//
// It asks again and again instead of sleeping in the kernel, since a blocked
// flock ends neither with a context nor after a time.
func flock(ctx context.Context, path string, how int, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	deadline := time.Now().Add(wait)
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !time.Now().Before(deadline) {
			err := fmt.Errorf("%w: %s is held by %s", ErrBusy, path, holders(f))
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// holders names the processes that hold a lock on f, as the kernel lists them.
func holders(f *os.File) string {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "another process"
	}
	inode := strconv.FormatUint(st.Ino, 10)
	data, err := fs.ReadFile(os.DirFS("/proc"), "locks")
	if err != nil {
		return "another process"
	}
	var pids []string
	for line := range strings.Lines(string(data)) {
		// 1: FLOCK ADVISORY WRITE 4711 fe:00:131076 0 EOF
		field := strings.Fields(line)
		if len(field) < 6 || field[1] != "FLOCK" || !strings.HasSuffix(field[5], ":"+inode) {
			continue
		}
		if !slices.Contains(pids, field[4]) {
			pids = append(pids, field[4])
		}
	}
	if len(pids) == 0 {
		return "another process"
	}
	return "process " + strings.Join(pids, ", ")
}
