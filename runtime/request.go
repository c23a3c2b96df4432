package runtime

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gaol/policy"
	"gaol/runtime/workspace"
)

// Request is one execution: exactly one of Code and Command is set.
type Request struct {
	Rootfs  Rootfs
	Policy  policy.Policy
	Code    *Code    // Python source, run as __main__ by the image's python3
	Command []string // any command of the image, looked up in its PATH

	Env []string // NAME=value, added to the built environment; names must be allowed by Policy.Env
	// Stdin is what the program reads from its standard input; nil is empty. A
	// Read that blocks outlives Run, and what it then gets is lost.
	Stdin  io.Reader
	Stdout io.Writer // receives the program's output as it comes, besides Result; may be nil
	Stderr io.Writer // likewise

	// Workspace is the directory the program may write, nil for a managed
	// one that is deleted with the sandbox. The caller closes it after Run.
	Workspace *workspace.Dir
	// WorkDir is the working directory inside; "" is /workspace.
	WorkDir string
	Mounts  []Mount
}

// Code is a Python program.
type Code struct {
	Name   string // as tracebacks and sys.argv[0] show it
	Source []byte
	Args   []string // sys.argv[1:]
}

// Mount shows a file or directory of the host read-only inside.
type Mount struct {
	Source      *workspace.Source // the caller closes it after Run
	Destination string            // absolute and clean, see CheckDestination
}

// Rootfs is the read-only root file system of a sandbox and what its image
// says about running in it. Package images yields the values.
type Rootfs struct {
	Path   string   // the EROFS file
	Digest string   // of the image, for the result
	Env    []string // NAME=value
	UID    uint32   // the user inside; never 0
	GID    uint32
}

func (r Request) check() error {
	switch {
	case (r.Code == nil) == (len(r.Command) == 0):
		return fmt.Errorf("%w: it needs either code or a command", ErrBadRequest)
	case r.Code == nil && r.Command[0] == "":
		return fmt.Errorf("%w: the command is empty", ErrBadRequest)
	case r.Rootfs.Path == "":
		return fmt.Errorf("%w: it names no rootfs", ErrBadRequest)
	case r.Rootfs.UID == 0:
		return fmt.Errorf("%w: user 0 inside is never used", ErrBadRequest)
	}
	texts := slices.Concat(r.Command, r.Env)
	if r.Code != nil {
		texts = slices.Concat(texts, []string{r.Code.Name}, r.Code.Args)
	}
	for _, text := range texts {
		// An OCI spec is JSON, which would change such bytes without a word.
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return fmt.Errorf("%w: %q has a NUL byte or is not UTF-8", ErrBadRequest, text)
		}
	}
	seen := map[string]bool{}
	for _, m := range r.Mounts {
		if err := CheckDestination(m.Destination); err != nil {
			return err
		}
		if seen[m.Destination] {
			return fmt.Errorf("%w: two mounts at %s", ErrBadRequest, m.Destination)
		}
		seen[m.Destination] = true
	}
	if err := r.Policy.Validate(); err != nil {
		return err
	}
	if r.WorkDir != "" && (!path.IsAbs(r.WorkDir) || path.Clean(r.WorkDir) != r.WorkDir || strings.ContainsRune(r.WorkDir, 0)) {
		return fmt.Errorf("%w: working directory %q is not a clean absolute path", ErrBadRequest, r.WorkDir)
	}
	return CheckEnv(r.Policy, r.Env)
}
