package policy_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

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

// Of address families only those that gVisor has are let through.
func TestRulesForSocket(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		rules := profileOf(t, arch)["socket"]
		for family := range uint64(64) {
			want := family == unix.AF_UNSPEC || // refused by every kernel
				family == unix.AF_UNIX || family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_NETLINK
			if got := allows(rules, family); got != want {
				t.Errorf("%s: socket(%d) allowed: %v", arch, family, got)
			}
		}
		if len(rules) > 3 {
			t.Errorf("%s: %d rules for socket cost time at each start", arch, len(rules))
		}
	}
}

func TestRulesForPersonality(t *testing.T) {
	rules := profileOf(t, "amd64")["personality"]
	for persona, want := range map[uint64]bool{0: true, 8: true, 0x20000: true, 0xffffffff: true, 0x40000: false, 1: false} {
		if got := allows(rules, persona); got != want {
			t.Errorf("personality(%#x) allowed: %v", persona, got)
		}
	}
}

// Whatever the source allows without conditions is either in the profile or
// among the names that the tests above want out.
func TestRulesFollowTheSource(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		table, err := policy.Syscalls(arch)
		if err != nil {
			t.Fatal(err)
		}
		byName := profileOf(t, arch)
		var missing []string
		for _, name := range moby.DefaultProfile().Syscalls[0].Names {
			if slices.Contains(table, name) && len(byName[name]) == 0 {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s: %v are not in the profile", arch, missing)
		}
		for name, rules := range byName {
			for _, r := range rules {
				filtered := len(r.Args) > 0
				if filtered != slices.Contains([]string{"clone", "socket", "personality"}, name) {
					t.Errorf("%s: unexpected rule %+v", arch, r)
				}
			}
		}
	}
}

// gVisor refuses other actions and ignores errno values (runsc features).
func TestSeccompProfileFitsGVisor(t *testing.T) {
	for arch, want := range map[string]specs.Arch{"amd64": specs.ArchX86_64, "arm64": specs.ArchAARCH64} {
		profile, err := policy.Builtin().Policy.SeccompProfile(arch)
		if err != nil {
			t.Fatal(err)
		}
		if profile.DefaultAction != specs.ActErrno || profile.DefaultErrnoRet != nil || profile.ListenerPath != "" || len(profile.Flags) > 0 {
			t.Errorf("%s: %+v", arch, profile)
		}
		if diff := cmp.Diff([]specs.Arch{want}, profile.Architectures); diff != "" {
			t.Error(diff)
		}
		for _, call := range profile.Syscalls {
			known := call.Action == specs.ActAllow || call.Action == specs.ActTrace && slices.Equal(call.Names, []string{"clone3"})
			if !known || call.ErrnoRet != nil || len(call.Names) == 0 {
				t.Errorf("%s: %+v", arch, call)
			}
		}
	}
	if _, err := policy.Builtin().Policy.SeccompProfile("riscv64"); !errors.Is(err, policy.ErrUnsupportedArch) {
		t.Error(err)
	}
}

// allowedNames are all names with an allowing rule in a policy's profile.
func allowedNames(t *testing.T, p policy.Policy) []string {
	t.Helper()
	profile, err := p.SeccompProfile("amd64")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, call := range profile.Syscalls {
		if call.Action == specs.ActAllow {
			names = append(names, call.Names...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CASES.md G3 and G7: a policy takes calls away, by known names only, and adds
// none.
func TestSeccompProfileIsNarrowed(t *testing.T) {
	all := allowedNames(t, policy.Builtin().Policy)
	without := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "mkdir" || s == "mkdirat" || s == "clone" })
	for text, want := range map[string][]string{
		"deny = [\"mkdir\", \"mkdirat\", \"clone\", \"clone3\", \"chown32\"]":  without,
		"allow = [\"read\", \"clone\", \"mount\", \"write\"]":                  {"clone", "read", "write"},
		"allow = [\"read\", \"socket\"]\ndeny = [\"socket\", \"personality\"]": {"read"},
		"allow = []": nil,
	} {
		p := policy.Builtin().Narrow("t", mustParse(t, "[seccomp]\n"+text)).Policy
		if diff := cmp.Diff(want, allowedNames(t, p)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	forged := policy.Builtin().Policy
	forged.Seccomp.Allow = []string{"read", "mount", "ptrace"}
	if diff := cmp.Diff([]string{"read"}, allowedNames(t, forged)); diff != "" {
		t.Error(diff)
	}
	forged.Seccomp.Allow = []string{"mkdri"}
	if _, err := forged.SeccompProfile("amd64"); !errors.Is(err, policy.ErrUnknownSyscall) || !errors.Is(err, policy.ErrValue) {
		t.Error(err)
	}
}

// Threads must not break because a list forgot how clone3 is refused.
func TestClone3StaysENOSYS(t *testing.T) {
	for _, text := range []string{"seccomp.deny = [\"clone3\"]", "seccomp.allow = [\"read\"]"} {
		rules, err := policy.Builtin().Narrow("t", mustParse(t, text)).Policy.Seccomp.Rules("amd64")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(rules, func(r policy.Rule) bool { return r.Name == "clone3" && r.Action == specs.ActTrace }) {
			t.Errorf("%s: clone3 would get EPERM", text)
		}
	}
}
