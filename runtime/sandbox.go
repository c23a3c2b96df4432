package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// teardownLimit bounds every wait for something that was killed.
const teardownLimit = 10 * time.Second

// sandbox is a gVisor sandbox: one process with its threads and stubs in a pid
// namespace, and, when something is bind-mounted, a gofer.
type sandbox struct {
	*launched
	ended chan struct{} // closed when the process has been reaped
	err   error         // why it could not be reaped
}

// watch reaps the sandbox process, whose parent became gaol when runsc ended,
// whatever becomes of ctx.
func (s *sandbox) watch(ctx context.Context) {
	defer close(s.ended)
	if s.err = waitPidfd(context.WithoutCancel(ctx), int(s.pidfd.Fd())); s.err != nil {
		return
	}
	if s.err = reap(int(s.pidfd.Fd())); s.err != nil {
		s.err = fmt.Errorf("reap the sandbox: %w", s.err)
	}
}

// reap takes a child that has ended off the process table.
func reap(pidfd int) error {
	for {
		err := unix.Waitid(unix.P_PIDFD, pidfd, nil, unix.WEXITED, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// gone waits, bounded, until the process has been reaped.
func (s *sandbox) gone(ctx context.Context) error {
	select {
	case <-s.ended:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the sandbox to end: %w", ctx.Err())
	}
}

// ending tells whether the process has ended or does so within a moment.
func (s *sandbox) ending(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return waitPidfd(ctx, int(s.pidfd.Fd())) == nil
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

// endGofer ends and reaps the file server process of the sandbox, which goes by
// itself when the sandbox has gone.
func (s *sandbox) endGofer(ctx context.Context) error {
	if s.gofer == nil {
		return nil
	}
	fd := int(s.gofer.Fd())
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill the gofer: %w", err)
	}
	if err := waitPidfd(ctx, fd); err != nil {
		return err
	}
	if err := reap(fd); err != nil {
		return fmt.Errorf("reap the gofer: %w", err)
	}
	return nil
}
