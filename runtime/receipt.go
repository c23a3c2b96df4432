package runtime

import (
	"fmt"
	"slices"
	"strings"
)

// Means is what enforces a limit or control on this host.
type Means string

// The means, strongest first. ByAffinity is the kernel's scheduler keeping the
// sandbox on as many processors as it may use: exact for whole numbers.
const (
	ByCgroup   Means = "cgroup"
	ByGVisor   Means = "gvisor"
	ByRlimit   Means = "rlimit"
	ByTmpfs    Means = "tmpfs"
	ByAffinity Means = "affinity"
	ByWatchdog Means = "watchdog"
	ByNone     Means = "none"
)

// Receipt names, for each limit and control, what enforces it.
type Receipt map[string]Means

// Unenforced lists what nothing enforces, sorted.
func (r Receipt) Unenforced() []string {
	var names []string
	for name, means := range r {
		if means == ByNone {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// CannotEnforceError says which limits nothing can enforce on this host.
type CannotEnforceError struct {
	Limits []string
	Why    string
}

func (e *CannotEnforceError) Error() string {
	return fmt.Sprintf("enforce %s: %s", strings.Join(e.Limits, ", "), e.Why)
}
