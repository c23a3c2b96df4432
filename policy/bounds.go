package policy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Bounds of the limits. What is not listed may be 1 or more.
const (
	// MinMemory is what gVisor and a bare interpreter need together.
	MinMemory = 32 * MiB
	// MaxMemory keeps sums of limits far from overflow.
	MaxMemory = 64 * TiB
	// MaxSize bounds every other Size.
	MaxSize = 1024 * TiB
	// MaxOutput is kept in our own memory, for each of two streams.
	MaxOutput = 1 * GiB
	// MinTmpfs is one page, the unit in which a tmpfs counts.
	MinTmpfs = 4 * KiB
	// MaxPIDs is the largest count of tasks.
	MaxPIDs = 32768
	// MinOpenFiles leaves an interpreter room to import modules.
	MinOpenFiles = 16
	// MaxOpenFiles is Linux's default ceiling (fs.nr_open).
	MaxOpenFiles = 1 << 20
	// MaxWorkspaceFiles is as many as a scan of the workspace stands.
	MaxWorkspaceFiles = 1 << 24
	// MinCPUs and MaxCPUs bound CPUs, which come in steps of 0.01.
	MinCPUs CPUs = 0.01
	MaxCPUs CPUs = 1024
	// MinTimeout and MaxTimeout bound the wall time.
	MinTimeout = Duration(time.Millisecond)
	MaxTimeout = Duration(30 * 24 * time.Hour)
	// MaxEntries bounds each list.
	MaxEntries = 4096
)

// Validate reports every value that is out of range, each as an *Error with
// its Key, of the class ErrValue. Zero and negative numbers are errors: they
// never mean unlimited.
func (p Policy) Validate() error {
	return errors.Join(p.Limits.validate(), p.validateLists())
}

func (l Limits) validate() error {
	return errors.Join(
		within("limits.memory", l.Memory, MinMemory, MaxMemory),
		within("limits.cpus", l.CPUs, MinCPUs, MaxCPUs),
		hundredths("limits.cpus", l.CPUs),
		within("limits.pids", l.PIDs, 1, MaxPIDs),
		within("limits.timeout", l.Timeout, MinTimeout, MaxTimeout),
		within("limits.output", l.Output, 1, MaxOutput),
		within("limits.output_total", l.OutputTotal, 1, MaxSize),
		within("limits.open_files", l.OpenFiles, MinOpenFiles, MaxOpenFiles),
		within("limits.file_size", l.FileSize, 1, MaxSize),
		within("limits.tmp", l.Tmp, MinTmpfs, MaxSize),
		within("limits.shm", l.Shm, MinTmpfs, MaxSize),
		within("limits.workspace", l.Workspace, 1, MaxSize),
		within("limits.workspace_files", l.WorkspaceFiles, 1, MaxWorkspaceFiles),
	)
}

func within[T cmp.Ordered](field string, v, low, high T) error {
	switch {
	case cmp.Compare(v, low) < 0:
		return invalid(field, "%v is below the minimum of %v; no value means unlimited", v, low)
	case v > high:
		return invalid(field, "%v is above the maximum of %v", v, high)
	}
	return nil
}

func hundredths(field string, v CPUs) error {
	text := strconv.FormatFloat(float64(v), 'f', -1, 64)
	if _, fraction, _ := strings.Cut(text, "."); len(fraction) > 2 && !math.IsNaN(float64(v)) {
		return invalid(field, "%v is not a multiple of 0.01", v)
	}
	return nil
}

func (p Policy) validateLists() error {
	return errors.Join(
		p.Seccomp.validate(),
		each("env.allow", p.Env.Allow, checkVariable),
		each("files.roots", p.Files.Roots, checkRoot),
		each("python.deny_imports", p.Python.DenyImports, checkModule),
		each("images.allowed", p.Images.Allowed, checkImage),
		each("enforcement.allow_unenforced", p.Enforcement.AllowUnenforced, checkLimitName),
	)
}

// each reports the first bad entry of a list.
func each(field string, list []string, check func(string) error) error {
	if len(list) > MaxEntries {
		return invalid(field, "%d entries are above the maximum of %d", len(list), MaxEntries)
	}
	for _, entry := range list {
		if err := check(entry); err != nil {
			return &Error{Key: field, Err: err}
		}
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &Error{Key: field, Err: fmt.Errorf("%w: %s", ErrValue, fmt.Sprintf(format, args...))}
}

func (s Seccomp) validate() error {
	if len(s.Allow)+len(s.Deny) == 0 {
		return nil
	}
	known := knownSyscalls()
	check := func(name string) error {
		if has(known, name) {
			return nil
		}
		return fmt.Errorf("%w %.80q%s", ErrUnknownSyscall, name, suggest(name, known))
	}
	return errors.Join(each("seccomp.allow", s.Allow, check), each("seccomp.deny", s.Deny, check))
}

func checkVariable(name string) error {
	if name == anything || isIdentifier(name, isASCIILetter) {
		return nil
	}
	return fmt.Errorf("%w: %.80q is no name of an environment variable", ErrValue, name)
}

func checkRoot(dir string) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || len(dir) >= 4096 || strings.ContainsRune(dir, 0) {
		return fmt.Errorf("%w: %.80q is not an absolute path below 4096 bytes in its shortest form", ErrValue, dir)
	}
	return nil
}

func checkModule(name string) error {
	for part := range strings.SplitSeq(name, ".") {
		if !isIdentifier(part, unicode.IsLetter) {
			return fmt.Errorf("%w: %.80q is no name of a Python module", ErrValue, name)
		}
	}
	return nil
}

func checkImage(reference string) error {
	blank := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if reference == "" || len(reference) > 512 || strings.ContainsFunc(reference, blank) {
		return fmt.Errorf("%w: %.80q is no image reference", ErrValue, reference)
	}
	return nil
}

func checkLimitName(name string) error {
	if slices.Contains(LimitNames(), name) {
		return nil
	}
	return fmt.Errorf("%w: %.80q is no limit%s", ErrValue, name, suggest(name, LimitNames()))
}

func isASCIILetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// isIdentifier reports letters, underscores and, not first, digits.
func isIdentifier(s string, isLetter func(rune) bool) bool {
	for i, r := range s {
		if !isLetter(r) && r != '_' && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}
