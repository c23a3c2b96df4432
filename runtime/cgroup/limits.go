package cgroup

import (
	"fmt"
	"math"
	"os"
	"strconv"
)

// Limits bound one group. Every field must be greater than zero; there is no
// value that means unlimited.
type Limits struct {
	// Memory in bytes, of all processes together, swap included. It is
	// rounded down to whole pages, as the kernel does.
	Memory int64
	// CPUs is CPU time per time: 1.5 is one and a half processors. At least
	// 0.01, the kernel's smallest quota.
	CPUs float64
	// Tasks is the number of host processes and threads. gVisor itself needs
	// dozens, and dies when it meets this wall: keep it wide, and limit the
	// program by RLIMIT_NPROC inside.
	Tasks int
}

// period is the window in microseconds over which a CPU quota is spent. It is
// the kernel's default; a shorter one stalls less and costs more switching.
const period = 100_000

func (l Limits) check() error {
	switch {
	case l.Memory < int64(os.Getpagesize()):
		return fmt.Errorf("limit memory to %d bytes: %w", l.Memory, ErrLimit)
	case !(l.CPUs >= 0.01) || l.CPUs > 1<<20: // the negation catches NaN
		return fmt.Errorf("limit CPUs to %v: %w", l.CPUs, ErrLimit)
	case l.Tasks < 1 || l.Tasks > 4<<20: // the kernel's PID_MAX_LIMIT
		return fmt.Errorf("limit tasks to %d: %w", l.Tasks, ErrLimit)
	}
	return nil
}

func (l Limits) memory() string {
	page := int64(os.Getpagesize())
	return strconv.FormatInt(l.Memory/page*page, 10)
}

func (l Limits) quota() string {
	return strconv.FormatInt(int64(math.Round(l.CPUs*period)), 10)
}

func (l Limits) tasks() string { return strconv.Itoa(l.Tasks) }
