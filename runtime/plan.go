package runtime

import (
	"math"
	"slices"

	"gaol/policy"
	"gaol/runtime/cgroup"
)

// hostMeans is what this host offers for enforcing limits.
type hostMeans struct {
	cgroups []string // controls that a cgroup of ours really enforces
	why     string   // why some of them are missing
	fix     string   // what the operator can do about it
	cpus    int      // processors that this process may use
}

// plan says how each limit of a policy will be enforced.
type plan struct {
	receipt  Receipt
	affinity int  // processors the sandbox is kept on, 0 for all
	watch    bool // the watchdog holds the memory limit
}

// hostTasksPerTask bounds the threads that gVisor's own processes need on the
// host for each task inside, hostTasksBase those that it needs for itself: the
// wide wall behind the limit inside, which alone would kill the sandbox.
const (
	hostTasksPerTask = 4
	hostTasksBase    = 256
)

// newPlan chooses the strongest means for each limit, and fails when one has
// none and the policy does not allow that.
func newPlan(p policy.Policy, host hostMeans) (plan, error) {
	pl := plan{receipt: Receipt{
		"network":         ByGVisor,
		"rootfs":          ByGVisor,
		"seccomp":         ByGVisor,
		"pids":            ByRlimit,
		"open_files":      ByRlimit,
		"file_size":       ByRlimit,
		"tmp":             ByTmpfs,
		"shm":             ByTmpfs,
		"timeout":         ByWatchdog,
		"output":          ByWatchdog,
		"output_total":    ByWatchdog,
		"workspace":       ByWatchdog,
		"workspace_files": ByWatchdog,
		"memory":          ByCgroup,
		"cpus":            ByCgroup,
	}}
	if !slices.Contains(host.cgroups, "memory") {
		pl.receipt["memory"] = ByWatchdog
		pl.watch = true
	}
	if !slices.Contains(host.cgroups, "cpus") {
		pl.receipt["cpus"], pl.affinity = cpusWithoutCgroup(float64(p.Limits.CPUs), host.cpus)
	}
	var missing []string
	for _, name := range pl.receipt.Unenforced() {
		if !slices.Contains(p.Enforcement.AllowUnenforced, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return plan{}, &CannotEnforceError{Limits: missing, Why: "part of a processor needs a cgroup, whole numbers do not (" + host.why + ")"}
	}
	return pl, nil
}

// cpusWithoutCgroup keeps the sandbox on whole processors, which is exact only
// for a whole number of them, or when the host has no more than are allowed.
func cpusWithoutCgroup(limit float64, available int) (Means, int) {
	whole := int(math.Ceil(limit))
	switch {
	case limit >= float64(available):
		return ByAffinity, available
	case float64(whole) == limit:
		return ByAffinity, whole
	default:
		return ByNone, whole
	}
}

// cgroupLimits are those of the sandbox's cgroup, memory included.
func cgroupLimits(l policy.Limits) cgroup.Limits {
	return cgroup.Limits{
		Memory: int64(l.Memory),
		CPUs:   float64(l.CPUs),
		Tasks:  hostTasksBase + hostTasksPerTask*l.PIDs,
	}
}
