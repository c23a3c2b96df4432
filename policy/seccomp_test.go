package policy_test

import (
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gaol/policy"
)

// profileOf is the built-in profile as name to rules.
func profileOf(t *testing.T, arch string) map[string][]policy.Rule {
	t.Helper()
	rules, err := policy.Rules(arch)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string][]policy.Rule{}
	for _, r := range rules {
		byName[r.Name] = append(byName[r.Name], r)
	}
	return byName
}

// ATTACKS.md A3: what reaches for other namespaces, processes, keys, mounts or
// the worst parts of a kernel is not in the profile.
func TestRulesLeaveOut(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		byName := profileOf(t, arch)
		for _, name := range []string{
			"unshare", "setns", "ptrace", "process_vm_readv", "process_vm_writev", "kcmp",
			"add_key", "keyctl", "request_key", "mount", "umount2", "pivot_root", "move_mount",
			"open_tree", "fsopen", "fsmount", "bpf", "perf_event_open", "userfaultfd",
			"io_uring_setup", "io_uring_enter", "io_uring_register", "chroot", "reboot",
			"init_module", "kexec_load", "open_by_handle_at", "settimeofday", "sethostname",
			"mbind", "syslog", "acct", "swapon",
		} {
			if rules := byName[name]; len(rules) > 0 {
				t.Errorf("%s: %s is in the profile: %v", arch, name, rules)
			}
		}
		for _, name := range []string{"read", "openat", "execve", "futex", "mmap", "wait4", "getrandom"} {
			if len(byName[name]) == 0 {
				t.Errorf("%s: %s is missing", arch, name)
			}
		}
	}
}

// CASES.md E7: threads need clone, and ENOSYS from clone3.
func TestRulesForClone(t *testing.T) {
	const newUser, newNet, threadFlags, sigchld = 0x10000000, 0x40000000, 0x3d0f00, 17
	for _, arch := range []string{"amd64", "arm64"} {
		byName := profileOf(t, arch)
		if r := byName["clone3"]; len(r) != 1 || r[0].Action != specs.ActTrace {
			t.Errorf("%s: clone3 has %v", arch, r)
		}
		for flags, want := range map[uint64]bool{
			threadFlags: true, sigchld: true, newUser: false, newNet: false,
			newUser | sigchld: false, 0x00020000: false, 0x02000000: false, 0x20000000 | threadFlags: false,
		} {
			if got := allows(byName["clone"], flags); got != want {
				t.Errorf("%s: clone(%#x) allowed: %v", arch, flags, got)
			}
		}
	}
}

// allows says what a profile's rules of one name make of a first argument.
func allows(rules []policy.Rule, first uint64) bool {
	for _, r := range rules {
		matches := r.Action == specs.ActAllow
		for _, arg := range r.Args {
			switch {
			case arg.Index != 0:
				matches = false
			case arg.Op == specs.OpMaskedEqual:
				matches = matches && first&arg.Value == arg.ValueTwo
			case arg.Op == specs.OpEqualTo:
				matches = matches && first == arg.Value
			case arg.Op == specs.OpLessThan:
				matches = matches && first < arg.Value
			default:
				matches = false
			}
		}
		if matches {
			return true
		}
	}
	return false
}
