package cgroup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tree is what a cgroup file system can do. Tests put a fake in its place.
type tree interface {
	mkdir(dir string) error
	rmdir(dir string) error
	// read returns a control file's text.
	read(file string) (string, error)
	// write hands value to a control file in one system call, made by the
	// calling thread.
	write(file, value string) error
	// children lists the groups directly inside dir.
	children(dir string) ([]string, error)
	// writable returns nil when this process may write file or dir.
	writable(file string) error
	// await returns when the file's text is as wished, or its group is gone,
	// or the time is over.
	await(file string, wish func(text string) bool, most time.Duration) error
}

type kernel struct{}

// most is more than any control file holds; cgroup.procs is the longest.
const most = 8 << 20

// mkdir leaves a group readable to all, like every other on the host.
func (kernel) mkdir(dir string) error { return os.Mkdir(dir, 0o755) }

func (kernel) rmdir(dir string) error {
	// os.Remove would try unlink first, which is one call wasted.
	return pathError("rmdir", dir, unix.Rmdir(dir))
}

func (kernel) read(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	return string(text), err
}

func (kernel) write(file, value string) error {
	// Not os.OpenFile: a control file must not be made when it is missing,
	// need not meet the poller, and the write must stay on this thread.
	fd, err := retried(func() (int, error) { return unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return pathError("open", file, err)
	}
	defer unix.Close(fd)
	n, err := retried(func() (int, error) { return unix.Write(fd, []byte(value)) })
	if err == nil && n != len(value) {
		err = io.ErrShortWrite
	}
	return pathError(fmt.Sprintf("write %q to", value), file, err)
}

func (kernel) children(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

func (kernel) writable(file string) error {
	return pathError("write", file, unix.Faccessat(unix.AT_FDCWD, file, unix.W_OK, unix.AT_EACCESS))
}

func (kernel) await(file string, wish func(string) bool, most time.Duration) error {
	fd, err := retried(func() (int, error) { return unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return pathError("open", file, err)
	}
	defer unix.Close(fd)
	text := make([]byte, 4096)
	for end := time.Now().Add(most); ; {
		// Reading arms the event: a change from here on wakes the poll.
		n, err := retried(func() (int, error) { return unix.Pread(fd, text, 0) })
		if err != nil {
			return pathError("read", file, err)
		}
		left := time.Until(end)
		if wish(string(text[:n])) || left <= 0 {
			return nil
		}
		poll(fd, unix.POLLPRI, left)
	}
}

// poll waits for one event of one descriptor, at most so long.
func poll(fd int, events int16, most time.Duration) {
	wait := unix.NsecToTimespec(int64(most))
	watched := []unix.PollFd{{Fd: int32(fd), Events: events}}
	// Interrupted or not: every caller looks again and knows its own deadline.
	_, _ = unix.Ppoll(watched, &wait, nil)
}

func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func pathError(op, file string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: file, Err: err}
}
