package cgroup

import (
	"errors"
	"fmt"
)

var (
	// ErrUnavailable means that no hierarchy here lets this process make groups. The
	// error is an *Unavailable, which has the reason and the fix.
	ErrUnavailable = errors.New("no usable cgroup")
	// ErrLimit means that a limit is not positive, or too small for the kernel to hold.
	ErrLimit = errors.New("limit out of range")
	// ErrName means that a group's name does not match gaol-[A-Za-z0-9_.-]+, is
	// "gaol-self", or is longer than 100 bytes.
	ErrName = errors.New("bad group name")
	// ErrReadBack means that the kernel holds another value than the one written.
	ErrReadBack = errors.New("kernel holds another value")
	// ErrBusy means that processes were still in the group when patience or the context ended.
	ErrBusy = errors.New("group is not empty")
	// ErrForeign means that a path is not that of a group of ours.
	ErrForeign = errors.New("not a gaol group")
	// ErrMainThread means that the process's first thread was to join a group,
	// and with it the whole process would be charged to it. Try from another thread.
	ErrMainThread = errors.New("main thread cannot join a group")
)

// Unavailable says why no group can be made and what the operator can do.
type Unavailable struct { //nolint:errname // a finding to show, of which being an error is one use
	// Reason is what stands in the way, in one line.
	Reason string
	// Fix is what to change, in one line.
	Fix string
	// Err is the cause, when there is one.
	Err error
}

func (u *Unavailable) Error() string {
	if u.Err == nil {
		return fmt.Sprintf("%v: %s", ErrUnavailable, u.Reason)
	}
	return fmt.Sprintf("%v: %s: %v", ErrUnavailable, u.Reason, u.Err)
}

// Is makes errors.Is(err, ErrUnavailable) true.
func (u *Unavailable) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns the cause.
func (u *Unavailable) Unwrap() error { return u.Err }
