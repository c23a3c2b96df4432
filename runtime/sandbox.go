package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// teardownLimit bounds every wait for something that was killed.
const teardownLimit = 10 * time.Second

// sandbox is a running gVisor sandbox: one process with its threads and stubs
// in a pid namespace, and, when something is bind-mounted, a gofer.
type sandbox struct {
	lease *lease
	*launched
	ended chan struct{} // closed when the process has been reaped
	exit  syscall.WaitStatus
	cpu   time.Duration
	err   error
}

// watch reaps the sandbox process, whose parent becomes gaol when runsc ends,
// whatever becomes of ctx.
func (s *sandbox) watch(ctx context.Context) {
	defer close(s.ended)
	if s.err = waitPidfd(context.WithoutCancel(ctx), int(s.pidfd.Fd())); s.err != nil {
		return
	}
	var usage unix.Rusage
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PIDFD, int(s.pidfd.Fd()), &info, unix.WEXITED, &usage)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PIDFD, int(s.pidfd.Fd()), &info, unix.WEXITED, &usage)
	}
	if err != nil {
		s.err = fmt.Errorf("reap the sandbox: %w", err)
		return
	}
	// The kernel reaps the stubs, which run the program's own code, before the
	// first process of their pid namespace ends: their time is in its own.
	s.cpu = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	s.exit = decodeSiginfo(&info)
}

// decodeSiginfo turns waitid's answer into a wait status. The kernel puts the
// code into si_code and the status into the word after the sender's uid.
func decodeSiginfo(info *unix.Siginfo) syscall.WaitStatus {
	const exited = 1 // CLD_EXITED
	status := siginfoStatus(info)
	if info.Code == exited {
		return syscall.WaitStatus(status << 8)
	}
	return syscall.WaitStatus(status & 0x7f)
}

// kill ends the whole sandbox from the host: with the first process of its pid
// namespace the kernel kills all others.
func (s *sandbox) kill() error {
	err := unix.PidfdSendSignal(int(s.pidfd.Fd()), unix.SIGKILL, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill the sandbox: %w", err)
	}
	return nil
}

// reapGofer ends and reaps the file server process of the sandbox, which goes
// by itself when the sandbox has gone.
func (s *sandbox) reapGofer(ctx context.Context) error {
	pid, err := goferPID(s.lease.path("r"))
	if err != nil || pid == 0 {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the gofer process: %w", err)
	}
	defer unix.Close(fd)
	// It is our child until reaped, so the number is still its own.
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill the gofer: %w", err)
	}
	if err := waitPidfd(ctx, fd); err != nil {
		return err
	}
	err = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED, nil)
	if err != nil && !errors.Is(err, unix.ECHILD) {
		return fmt.Errorf("reap the gofer: %w", err)
	}
	return nil
}

// goferPID reads the gofer's pid from runsc's own record of the container, 0
// when there is none.
func goferPID(root string) (int, error) {
	data, err := os.ReadFile(filepath.Join(root, fmt.Sprintf("%s_sandbox:%s.state", containerID, containerID)))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
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
