package policy

import (
	"fmt"
	"slices"
	"strings"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Rule is one line of a profile as a table: what happens to one system call.
type Rule struct {
	Name   string
	Action specs.LinuxSeccompAction
	// Args, if any, must all match for the action; a call with other arguments
	// gets EPERM unless another Rule of the same name matches it.
	Args []specs.LinuxSeccompArg
}

// newNamespaces are the clone flags that make a namespace. CLONE_NEWTIME is
// there for completeness: clone takes that bit as part of the exit signal.
const newNamespaces = 0x00000080 | // CLONE_NEWTIME
	0x00020000 | // CLONE_NEWNS
	0x02000000 | // CLONE_NEWCGROUP
	0x04000000 | // CLONE_NEWUTS
	0x08000000 | // CLONE_NEWIPC
	0x10000000 | // CLONE_NEWUSER
	0x20000000 | // CLONE_NEWPID
	0x40000000 // CLONE_NEWNET

// neverAllowed is what stays out whatever the source data say: new namespaces,
// looking into other processes, kernel keys, mounts, and the parts of a kernel
// with the worst record. Most of it is absent there already; naming it keeps an
// update of the data from bringing it in.
func neverAllowed(name string) bool {
	switch name {
	case "unshare", "setns",
		"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
		"add_key", "keyctl", "request_key",
		"mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "mount_setattr",
		"open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick",
		"bpf", "perf_event_open", "userfaultfd",
		"io_uring_setup", "io_uring_enter", "io_uring_register",
		"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
		"open_by_handle_at":
		return true
	}
	return false
}

// Rules is the built-in profile for an architecture (a GOARCH) as a table,
// sorted by name: what moby's default profile allows to a container without
// capabilities, less what no sandbox of ours needs. A name that is missing
// gets EPERM. The error is ErrUnsupportedArch.
func Rules(arch string) ([]Rule, error) {
	names, err := Syscalls(arch)
	if err != nil {
		return nil, err
	}
	var rules []Rule
	for _, call := range moby.DefaultProfile().Syscalls {
		if call.Action != specs.ActAllow || !applies(call, arch) {
			continue
		}
		for _, name := range call.Names {
			if has(names, name) && !replaced(name, call.Args) {
				rules = append(rules, Rule{Name: name, Action: specs.ActAllow, Args: slices.Clone(call.Args)})
			}
		}
	}
	rules = append(rules, cloneRules()...)
	slices.SortStableFunc(rules, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
	return rules, nil
}

// applies reports that a rule holds without capabilities on the architecture.
func applies(call *moby.Syscall, arch string) bool {
	if in := call.Includes; in != nil {
		if len(in.Caps) > 0 || len(in.Arches) > 0 && !slices.Contains(in.Arches, arch) {
			return false
		}
	}
	return call.Excludes == nil || !slices.Contains(call.Excludes.Arches, arch)
}

// replaced reports a rule that gaol leaves out or states in its own words.
func replaced(name string, args []specs.LinuxSeccompArg) bool {
	switch name {
	case "clone", "clone3":
		return true
	case "socket":
		return !familyOfGVisor(args)
	}
	return neverAllowed(name)
}

// familyOfGVisor reports a rule for address families that gVisor implements:
// Unix and IPv4, which the data joins in one comparison, IPv6 and netlink. The
// data has a rule for each of some thirty more. They would refuse nothing and
// allow nothing, but take 8 ms of every cold start to compile.
func familyOfGVisor(args []specs.LinuxSeccompArg) bool {
	if len(args) != 1 || args[0].Index != 0 {
		return false
	}
	below := args[0].Op == specs.OpLessThan && args[0].Value == unix.AF_INET+1
	equal := args[0].Op == specs.OpEqualTo && slices.Contains(
		[]uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}, args[0].Value)
	return below || equal
}

// cloneRules let threads and processes start, without new namespaces. clone3
// takes its flags in memory, where no filter sees them; the C library falls
// back to clone only on ENOSYS, and that is what gVisor answers to a traced
// call without a tracer, while it turns any errno of ours into EPERM.
func cloneRules() []Rule {
	return []Rule{
		{Name: "clone", Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
			{Index: 0, Value: newNamespaces, ValueTwo: 0, Op: specs.OpMaskedEqual},
		}},
		{Name: "clone3", Action: specs.ActTrace},
	}
}

// Rules is the profile's table under the policy: the built-in rules less what
// the policy takes away. Calls that are answered with ENOSYS stay, since that
// is a refusal too.
func (s Seccomp) Rules(arch string) ([]Rule, error) {
	rules, err := Rules(arch)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rules, func(r Rule) bool {
		refused := s.Allow != nil && !slices.Contains(s.Allow, r.Name) || slices.Contains(s.Deny, r.Name)
		return r.Action == specs.ActAllow && refused
	}), nil
}

// SeccompProfile is the OCI form of the policy's rules for an architecture (a
// GOARCH): anything else gets EPERM. It uses only what gVisor implements, and
// does nothing unless runsc runs with --oci-seccomp. Errors are
// ErrUnknownSyscall and ErrUnsupportedArch.
func (p Policy) SeccompProfile(arch string) (*specs.LinuxSeccomp, error) {
	if err := p.Seccomp.validate(); err != nil {
		return nil, fmt.Errorf("build seccomp profile: %w", err)
	}
	rules, err := p.Seccomp.Rules(arch)
	if err != nil {
		return nil, fmt.Errorf("build seccomp profile: %w", err)
	}
	profile := &specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno,
		Architectures: []specs.Arch{seccompArch(arch)},
	}
	var plain []string
	for _, r := range rules {
		if r.Action == specs.ActAllow && len(r.Args) == 0 {
			plain = append(plain, r.Name)
			continue
		}
		profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{
			Names: []string{r.Name}, Action: r.Action, Args: r.Args,
		})
	}
	if len(plain) > 0 {
		all := specs.LinuxSyscall{Names: slices.Compact(plain), Action: specs.ActAllow}
		profile.Syscalls = append([]specs.LinuxSyscall{all}, profile.Syscalls...)
	}
	return profile, nil
}

// seccompArch names the one architecture that gVisor emulates beside arch:
// itself. There are no 32-bit calls in it.
func seccompArch(arch string) specs.Arch {
	if arch == "arm64" {
		return specs.ArchAARCH64
	}
	return specs.ArchX86_64
}
