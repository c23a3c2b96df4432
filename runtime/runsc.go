package runtime

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	runscPackage = "gvisor.dev/gvisor/runsc"
	gvisorModule = "gvisor.dev/gvisor"

	// RunscVersion and the hash of the gVisor module, as runtime/gvisor/go.sum
	// has them; a test keeps them equal.
	RunscVersion = "v0.0.0-20260905035102-160fafc42237"
	runscSum     = "h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg44="
)

// CheckRunsc tells whether the binary at path is runsc, built from the gVisor
// module that gaol pins, and not writable by strangers. Errors are ErrRunsc.
func CheckRunsc(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s does not exist; `make build` makes it beside gaol, or set runsc in config.toml", ErrRunsc, path)
		}
		return fmt.Errorf("%w: %s: %w", ErrRunsc, path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0:
		return fmt.Errorf("%w: %s is not an executable file", ErrRunsc, path)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%w: others may write %s; chmod go-w it", ErrRunsc, path)
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%w: %s belongs to user %d, neither root nor you", ErrRunsc, path, st.Uid)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: %s is not a Go program: %w", ErrRunsc, path, err)
	}
	switch {
	case info.Path != runscPackage:
		return fmt.Errorf("%w: %s was built from %s, not from %s", ErrRunsc, path, info.Path, runscPackage)
	case info.Main.Path != gvisorModule || info.Main.Version != RunscVersion || info.Main.Sum != runscSum:
		return fmt.Errorf("%w: %s is gVisor %s; this gaol needs %s; `make build` makes it", ErrRunsc, path, info.Main.Version, RunscVersion)
	}
	return nil
}

// explainNoUserns recognises a host that forbids user namespaces.
func explainNoUserns(err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS) {
		return fmt.Errorf("%w: %w", ErrNoUserns, err)
	}
	return err
}
