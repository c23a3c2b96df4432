package runtime

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime/cgroup"
)

// Check is one thing that gaol needs, or could use, of a host.
type Check struct {
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`
	Fix    string      `json:"fix,omitempty"` // what to do, when Status is not CheckOK
}

// CheckStatus is how a check came out.
type CheckStatus string

// With CheckWarn executions run, with weaker means; with CheckFail they do not.
const (
	CheckOK   CheckStatus = "ok"
	CheckWarn CheckStatus = "warn"
	CheckFail CheckStatus = "fail"
)

// Diagnose looks at the host. It changes nothing that outlives the process; with
// cgroup v2 the process may move into a group of its own.
func Diagnose(ctx context.Context, cfg Config, p policy.Policy) []Check {
	checks := []Check{checkKernel(), checkPlatform(), checkUser(), checkState(cfg.State), checkUserns(ctx), checkRunsc(cfg.Runsc)}
	group, means := checkCgroup(ctx, cfg.Cgroup)
	checks = append(checks, group)
	return append(checks, checkLimits(p, means))
}

func checkKernel() Check {
	c := Check{Name: "kernel", Status: CheckOK}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return Check{c.Name, CheckFail, err.Error(), "run on Linux"}
	}
	release := unix.ByteSliceToString(uts.Release[:])
	c.Detail = "Linux " + release
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return Check{c.Name, CheckWarn, c.Detail, "use a kernel of 5.12 or later"}
	}
	// Idmapped mounts came with 5.12; an ordinary user needs none.
	if oldest := 5*1000 + 6; major*1000+minor < oldest || os.Geteuid() == 0 && major*1000+minor < 5*1000+12 {
		c.Status, c.Fix = CheckFail, "use a kernel of 5.12 or later (5.6 for an ordinary user)"
	}
	return c
}

// checkPlatform looks for what gVisor's systrap platform stands on.
func checkPlatform() Check {
	const name = "platform"
	actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil || !slices.Contains(strings.Fields(string(actions)), "trap") {
		return Check{name, CheckFail, "the kernel has no seccomp trap action", "use a kernel with CONFIG_SECCOMP_FILTER"}
	}
	return Check{Name: name, Status: CheckOK, Detail: "systrap (seccomp trap is there)"}
}

func checkUser() Check {
	const name = "user"
	if os.Geteuid() != 0 {
		return Check{Name: name, Status: CheckOK, Detail: "ordinary, sandboxes run under your own id"}
	}
	if err := checkPrivileges(); err != nil {
		return Check{name, CheckFail, err.Error(), "run gaol as an ordinary user, or give the container this capability"}
	}
	return Check{Name: name, Status: CheckOK, Detail: "root, each sandbox runs under an unprivileged id of its own"}
}

// checkState looks at the state directory, or where it will be made.
func checkState(dir string) Check {
	const name, fix = "state", "set host.state in config.toml"
	if err := checkStatePath(dir); err != nil {
		return Check{name, CheckFail, err.Error(), fix}
	}
	there := dir
	for _, err := os.Stat(there); err != nil && there != "/"; _, err = os.Stat(there) {
		there = filepath.Dir(there)
	}
	if os.Geteuid() == 0 {
		if err := checkReachable(there); err != nil {
			return Check{name, CheckFail, err.Error(), fix}
		}
	}
	return Check{Name: name, Status: CheckOK, Detail: dir}
}

// usernsSwitches are the sysctls that forbid user namespaces to ordinary users.
var usernsSwitches = []struct{ file, forbids, fix string }{
	{"kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"},
	{"kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for gaol and runsc that allows userns"},
	{"user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"},
}

// checkUserns makes the namespaces that gaol and runsc make.
func checkUserns(ctx context.Context) Check {
	const name = "user namespaces"
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return Check{name, CheckFail, err.Error(), "mount /proc"}
	}
	// The child is killed at once; what it would do, print its version, harms nobody.
	attr := outerNamespace()
	attr.Cloneflags |= unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	cmd := exec.CommandContext(ctx, self, "--version")
	cmd.Env, cmd.SysProcAttr = []string{}, attr
	err = cmd.Start()
	if err == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return Check{Name: name, Status: CheckOK, Detail: "user, pid, mount, network, ipc and uts namespaces can be made"}
	}
	c := Check{Name: name, Status: CheckFail, Detail: err.Error(), Fix: "ask whoever runs the host to allow user namespaces"}
	for _, s := range usernsSwitches {
		value, readErr := os.ReadFile(filepath.Join("/proc/sys", s.file))
		if readErr == nil && strings.TrimSpace(string(value)) == s.forbids {
			c.Detail = fmt.Sprintf("%v: %s is %s", err, strings.ReplaceAll(s.file, "/", "."), s.forbids)
			c.Fix = s.fix
			break
		}
	}
	return c
}

func checkRunsc(path string) Check {
	const name = "runsc"
	if err := CheckRunsc(path); err != nil {
		return Check{name, CheckFail, err.Error(), "`make build` makes runsc beside gaol; runsc in config.toml names another one"}
	}
	return Check{Name: name, Status: CheckOK, Detail: fmt.Sprintf("%s, gVisor %s", path, RunscVersion)}
}

func checkCgroup(ctx context.Context, cfg cgroup.Config) (Check, hostMeans) {
	const name = "cgroup"
	probe := &Engine{cfg: Config{Cgroup: cfg}}
	if err := probe.findMeans(ctx); err != nil {
		return Check{name, CheckFail, err.Error(), "correct host.cgroup_parent in config.toml"}, probe.means
	}
	if probe.hierarchy == nil || len(probe.means.cgroups) < 3 {
		return Check{name, CheckWarn, probe.means.why + "; rlimits and a watchdog hold the limits instead", probe.means.fix}, probe.means
	}
	return Check{Name: name, Status: CheckOK, Detail: fmt.Sprintf("version %d, controls %s", probe.hierarchy.Version(), strings.Join(probe.means.cgroups, ", "))}, probe.means
}

// checkLimits says how the limits of the effective policy would be enforced.
func checkLimits(p policy.Policy, means hostMeans) Check {
	const name = "limits"
	pl, err := newPlan(p, means)
	if err != nil {
		return Check{name, CheckFail, err.Error(), "use whole cpus, a delegated cgroup, or enforcement.allow_unenforced in config.toml"}
	}
	var parts []string
	for _, limit := range policy.LimitNames() {
		parts = append(parts, limit+" "+string(pl.receipt[limit]))
	}
	c := Check{Name: name, Status: CheckOK, Detail: strings.Join(parts, ", ")}
	if none := pl.receipt.Unenforced(); len(none) > 0 {
		c.Status, c.Fix = CheckWarn, "nothing enforces "+strings.Join(none, ", ")+"; the policy allows that"
	}
	return c
}
