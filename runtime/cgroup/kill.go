package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kill ends every process in the group and returns when none is left. The
// group is of no use afterwards but for Usage and Remove. It waits as long as
// ctx allows, at most ten seconds; then the error is ErrBusy.
func (g *Group) Kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errs []error
	for _, dir := range g.paths {
		// One tree that resists must not spare the others.
		errs = append(errs, empty(ctx, g.h.fs, g.h.version, dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("kill %s: %w", g.name, err)
	}
	return nil
}

// round is how long one look at a group waits for its processes to end.
const round = 20 * time.Millisecond

// empty kills what is in dir and the groups inside it until nothing is.
func empty(ctx context.Context, fs tree, version int, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, round) {
		if wait > 100*time.Microsecond {
			// Something outlived a kill, so it may be forking: stop that.
			_ = fs.write(path.Join(dir, "pids.max"), "0")
		}
		left, err := slay(fs, version, dir)
		if err == nil && left == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("%w: %d processes in %s: %w", ErrBusy, left, dir, ctx.Err()), err)
		}
		backOff(ctx, wait)
	}
}

// slay kills once what is in dir and below, waits a little, and counts what
// is left.
func slay(fs tree, version int, dir string) (int, error) {
	if version == 2 {
		err := fs.write(path.Join(dir, "cgroup.kill"), "1") // Linux 5.14, all groups below as well
		if err == nil {
			return depopulated(fs, dir)
		}
		if !gone(err) {
			return 1, err
		}
	}
	inside, err := fs.children(dir)
	if gone(err) {
		return 0, nil
	}
	left, errs := 0, []error{err}
	for _, child := range inside {
		n, err := slay(fs, version, path.Join(dir, child))
		left, errs = left+n, append(errs, err)
	}
	n, err := strike(fs, dir, unix.SIGKILL)
	return left + n, errors.Join(append(errs, err)...)
}

// depopulated waits one round for the end of all processes in and below dir;
// it returns 1 when some are left.
func depopulated(fs tree, dir string) (int, error) {
	left := 1
	err := fs.await(path.Join(dir, "cgroup.events"), func(text string) bool {
		if keyed(text)["populated"] == "0" {
			left = 0
		}
		return left == 0
	}, round)
	if gone(err) {
		return 0, nil
	}
	return left, err
}

// members lists the processes of a group. A process of another pid namespace
// has the number 0.
func members(fs tree, dir string) ([]int, error) {
	text, err := fs.read(path.Join(dir, "cgroup.procs"))
	if gone(err) {
		return nil, nil
	}
	var pids []int
	for _, word := range strings.Fields(text) {
		pid, errPid := strconv.Atoi(word)
		if errPid != nil {
			return nil, fmt.Errorf("read members of %s: %w", dir, errPid)
		}
		pids = append(pids, pid)
	}
	return pids, err
}

// strike sends sig to the members of one group (none when sig is 0), waits one
// round for their end, and counts who is left. Never does it hit ourselves: a
// thread of ours that is just starting a process makes us a member (v1).
func strike(fs tree, dir string, sig unix.Signal) (int, error) {
	pids, err := members(fs, dir)
	if err != nil || len(pids) == 0 {
		return 0, err
	}
	held := map[int]int{} // pid to pidfd
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}()
	for _, pid := range pids[:min(len(pids), 256)] {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil && pid != os.Getpid() {
			held[pid] = fd
		} else if err == nil {
			_ = unix.Close(fd)
		}
	}
	// A number may have gone to a stranger between listing and opening. Who is
	// listed now, and held, is the one that is meant.
	pids, err = members(fs, dir)
	errs := []error{err}
	for pid, fd := range held {
		if sig != 0 && slices.Contains(pids, pid) {
			if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && err != unix.ESRCH {
				errs = append(errs, fmt.Errorf("kill process %d: %w", pid, err))
			}
		}
	}
	end := time.Now().Add(round)
	for _, fd := range held {
		poll(fd, unix.POLLIN, max(0, time.Until(end)))
	}
	pids, err = members(fs, dir)
	return len(pids), errors.Join(append(errs, err)...)
}

// backOff sleeps, or less when ctx ends first.
func backOff(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
