package runtime

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// adopt finds the sandbox's processes, by what runsc wrote before any program
// ran, and proves that they are children of ours: their numbers cannot pass to
// others before we reap them.
func (l *launched) adopt(in launchInput) (err error) {
	if l.pid, err = readPID(in.lease.path("r/pid")); err != nil {
		return err
	}
	if l.pidfd, err = openChild(l.pid); err != nil {
		return fmt.Errorf("open the sandbox process: %w", err)
	}
	if l.goferPID, err = goferPID(in.lease.path("r")); err != nil {
		return err
	}
	if l.goferPID != 0 {
		if l.gofer, err = openChild(l.goferPID); err != nil {
			return fmt.Errorf("open the gofer process: %w", err)
		}
	}
	return l.checkAffinity(in.affinity)
}

// openChild opens a pidfd of a child.
func openChild(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("process %d is no child of gaol: %w", pid, err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// checkAffinity reads back what keeps the sandbox on its processors.
func (l *launched) checkAffinity(n int) error {
	if n == 0 {
		return nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(l.pid, &set); err != nil {
		return fmt.Errorf("read back the sandbox's processors: %w", err)
	}
	if set.Count() > n {
		return fmt.Errorf("the sandbox runs on %d processors, not on %d", set.Count(), n)
	}
	return nil
}

// maxRecord bounds what is read of runsc's own files, in bytes.
const maxRecord = 4 << 20

func readRecord(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRecord))
}

// readPID reads the pid file that runsc wrote.
func readPID(path string) (int, error) {
	text, err := readRecord(path)
	if err != nil {
		return 0, fmt.Errorf("read the sandbox's pid: %w", err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("read the sandbox's pid: got %.40q", text)
	}
	return pid, nil
}

// goferPID reads the gofer's pid from runsc's record of the container, 0 when
// it has none.
func goferPID(root string) (int, error) {
	data, err := readRecord(filepath.Join(root, fmt.Sprintf("%s_sandbox:%s.state", containerID, containerID)))
	if err != nil {
		return 0, fmt.Errorf("read runsc's record: %w", err)
	}
	var record struct {
		GoferPID int `json:"goferPid"`
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return 0, fmt.Errorf("read runsc's record: %w", err)
	}
	return record.GoferPID, nil
}
