package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/cgroup"
)

// Reap removes what dead owners left behind: processes, cgroups, directories,
// host ids. It touches nothing of a live owner, and any number of processes may
// reap at once. It returns how many sandboxes it removed.
func (e *Engine) Reap(ctx context.Context) (int, error) {
	dead, err := e.deadLeases()
	if err != nil {
		return 0, err
	}
	removed := 0
	var errs []error
	for _, l := range dead {
		if err := e.bury(ctx, l); err != nil {
			errs = append(errs, fmt.Errorf("remove what sandbox %s left: %w", l.id, err))
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}

// deadLeases finds the directories whose owner is gone, each locked for us. New
// leases wait meanwhile, so that a directory without a lock is a dead one.
func (e *Engine) deadLeases() ([]*lease, error) {
	unlock, err := lockFile(filepath.Join(e.cfg.State, "lock"), unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, err := os.ReadDir(filepath.Join(e.cfg.State, "run"))
	if err != nil {
		return nil, fmt.Errorf("list live sandboxes: %w", err)
	}
	var dead []*lease
	for _, entry := range entries {
		l := &lease{id: entry.Name(), dir: filepath.Join(e.cfg.State, "run", entry.Name())}
		l.lock, err = os.OpenFile(l.path("lock"), os.O_RDWR, 0)
		if err == nil && flock(l.lock, unix.LOCK_EX|unix.LOCK_NB) != nil {
			_ = l.lock.Close()
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			for _, l := range dead {
				l.abandon()
			}
			return nil, fmt.Errorf("open the lock of sandbox %s: %w", l.id, err)
		}
		dead = append(dead, l)
	}
	return dead, nil
}

// bury removes what a dead owner left. After an error the directory stays, for
// the next try.
func (e *Engine) bury(ctx context.Context, l *lease) (err error) {
	ctx, cancel := context.WithTimeout(ctx, teardownLimit)
	defer cancel()
	defer func() {
		if err != nil {
			l.abandon()
		}
	}()
	if err := e.remember(l); err != nil {
		return err
	}
	if len(l.Cgroups) > 0 {
		if err := cgroup.Reap(ctx, l.Cgroups); err != nil {
			return err
		}
	}
	if err := killByArgument(ctx, l.dir); err != nil {
		return err
	}
	return l.release(ctx, e.cfg.State)
}

// remember reads the owner's record. One that is not there was not written yet:
// then nothing that it would name was made. One that is damaged is replaced by
// what can be derived from the sandbox's id.
func (e *Engine) remember(l *lease) error {
	data, err := os.ReadFile(l.path("owner.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && json.Unmarshal(data, &l.owner) == nil && l.Version == ownerVersion {
		return nil
	}
	if e.hierarchy != nil {
		l.Cgroups = e.hierarchy.Paths(l.group())
	}
	links, err := os.ReadDir(filepath.Join(e.cfg.State, "ids"))
	if err != nil {
		return fmt.Errorf("list host ids: %w", err)
	}
	for _, link := range links {
		id, err := strconv.ParseUint(link.Name(), 10, 32)
		if err != nil {
			continue
		}
		if holder, err := os.Readlink(hostIDPath(e.cfg.State, uint32(id))); err == nil && holder == l.id {
			l.HostID = uint32(id)
		}
	}
	return nil
}

// killByArgument kills every process that has an argument beneath dir, whose
// name nobody can guess, and waits until it is gone: those are the sandbox's.
func killByArgument(ctx context.Context, dir string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if err := killIfArgument(ctx, pid, dir); err != nil {
			return err
		}
	}
	return nil
}

func killIfArgument(ctx context.Context, pid int, dir string) error {
	// The descriptor comes first: what is read afterwards is of this very
	// process, or of none.
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // gone
	}
	defer unix.Close(fd)
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	program, _, _ := bytes.Cut(args, []byte{0})
	if err != nil || !strings.HasPrefix(filepath.Base(string(program)), "runsc") || !bytes.Contains(args, []byte(dir+"/")) {
		return nil
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EPERM):
		return nil // gone, or another user's that only looks like it
	case err != nil:
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	if err := waitPidfd(ctx, fd); err != nil {
		return err
	}
	if err := reap(fd); err != nil && !errors.Is(err, unix.ECHILD) {
		return fmt.Errorf("reap process %d: %w", pid, err)
	}
	return nil
}

// waitPidfd waits until the process has ended, zombie or gone.
func waitPidfd(ctx context.Context, fd int) error {
	for {
		wait := 100 * time.Millisecond // only how often ctx is looked at
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait for a killed process: %w", err)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for a killed process: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
}
