package policy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

// The tables are those of golang.org/x/sys/unix, read from its source because
// a build holds only its own architecture's.
func TestSyscallsAreThoseOfTheKernel(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil || strings.TrimSpace(string(dir)) == "" {
		t.Skip("the source of golang.org/x/sys is not at hand:", err)
	}
	constant := regexp.MustCompile(`(?m)^\s+SYS_([A-Z0-9_]+)\s+=`)
	for _, arch := range []string{"amd64", "arm64"} {
		source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, match := range constant.FindAllStringSubmatch(string(source), -1) {
			if name := strings.ToLower(match[1]); name != "arch_specific_syscall" { // marks a range of numbers
				want = append(want, name)
			}
		}
		slices.Sort(want)
		got, err := policy.Syscalls(arch)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", arch, diff)
		}
	}
	if _, err := policy.Syscalls("386"); !errors.Is(err, policy.ErrUnsupportedArch) {
		t.Error(err)
	}
}

// CASES.md G7, G2: the nearest name is offered.
func TestTyposGetAHint(t *testing.T) {
	for text, want := range map[string]string{
		"seccomp.deny = [\"mkdri\"]":                   "mkdir",
		"seccomp.deny = [\"ptraec\"]":                  "ptrace",
		"seccomp.allow = [\"Read\"]":                   "read",
		"limits.memroy = 1":                            "memory",
		"limits.MEMORY = 1":                            "memory",
		"memroy = 1":                                   "memory",
		"limit = 1":                                    "limits",
		"limits.time_out = 1":                          "timeout",
		"python.deny_import = []":                      "deny_imports",
		"enforcement.allow_unenforced = [\"cpu\"]":     "cpus",
		"enforcement = { allow_unenforced = [\"ram\"]": "",
	} {
		_, err := policy.ParseDocument("p", []byte(text))
		if err == nil || want != "" && !strings.Contains(err.Error(), "did you mean \""+want+"\"") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
