package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"
)

// ErrBuilder means that packages cannot be installed on this host; the
// message says what is missing and the command that helps.
var ErrBuilder = errors.New("cannot install packages")

const (
	// termGrace is how long mmdebstrap may take to remove its own tree.
	termGrace = 10 * time.Second
	// lastWords bounds how much of its output an error repeats.
	lastWords = 12
)

// mmdebstrap is one run of the program that installs Debian packages into a
// tree of its own and writes the tree as a tar stream.
type mmdebstrap struct {
	recipe Recipe
	// temp is an existing directory for the tree, removed by the caller.
	temp string
	note func(Progress)
}

// builderMode finds how this user can run mmdebstrap.
func builderMode(euid int) (program, mode string, err error) {
	program, err = exec.LookPath("mmdebstrap")
	if err != nil {
		return "", "", fmt.Errorf("%w: mmdebstrap is not installed: sudo apt-get install mmdebstrap", ErrBuilder)
	}
	if euid == 0 {
		return program, "root", nil
	}
	if _, err := exec.LookPath("newuidmap"); err != nil {
		return "", "", fmt.Errorf("%w as an ordinary user: newuidmap is not installed: sudo apt-get install uidmap", ErrBuilder)
	}
	me, err := user.Current()
	if err != nil {
		return "", "", fmt.Errorf("%w: find own name: %w", ErrBuilder, err)
	}
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		if !hasRange(file, me.Username, me.Uid) {
			return "", "", fmt.Errorf("%w as an ordinary user: %s has no range for %s: "+
				"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s", ErrBuilder, file, me.Username, me.Username)
		}
	}
	return program, "unshare", nil
}

func hasRange(file, name, id string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		owner, _, ok := strings.Cut(line, ":")
		if ok && (owner == name || owner == id) {
			return true
		}
	}
	return false
}

// run writes the tar stream to out. When ctx ends, the whole process group is
// told to stop and, if it does not, killed.
func (m mmdebstrap) run(ctx context.Context, out io.Writer) error {
	program, mode, err := builderMode(os.Geteuid())
	if err != nil {
		return err
	}
	args, err := m.arguments(ctx, mode)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/nonexistent", "LC_ALL=C.UTF-8", "TMPDIR=" + m.temp,
	}
	cmd.Dir = "/"
	cmd.Stdout = out
	words := &tail{note: m.note}
	cmd.Stderr = words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = termGrace
	// The death signal is tied to the thread that forks.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	err = cmd.Run()
	if cmd.Process != nil {
		// What is left of the group, if anything.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w: mmdebstrap: %w: %s", ErrBuilder, err, words)
	}
	return nil
}

// arguments builds the command line. Host names and keys are the host's own,
// from /etc/apt.
func (m mmdebstrap) arguments(ctx context.Context, mode string) ([]string, error) {
	variant := m.recipe.Variant
	if variant == "" {
		variant = "custom"
	}
	args := []string{
		"--mode=" + mode, "--variant=" + variant, "--format=tar",
		"--include=" + strings.Join(m.recipe.Packages, ","),
		`--aptopt=Acquire::Languages "none"`,
		// The tree is thrown away; nothing in it needs to survive a crash.
		"--dpkgopt=force-unsafe-io",
	}
	for _, dir := range m.recipe.Skip {
		args = append(args, "--dpkgopt=path-exclude="+dir+"/*")
	}
	options, err := hostAptOptions(ctx)
	if err != nil {
		return nil, err
	}
	if options != "" {
		file := filepath.Join(m.temp, "apt.conf")
		perm := os.FileMode(0o600) // a proxy's address may hold a password
		if mode == "unshare" {
			perm = 0o644 // apt runs as another id, and any user could read it before
		}
		if err := os.WriteFile(file, []byte(options), perm); err != nil {
			return nil, fmt.Errorf("write apt options: %w", err)
		}
		args = append(args, "--aptopt="+file)
	}
	args = append(args, m.recipe.Suite, "-")
	sources, err := hostSources("/etc/apt", m.recipe.Suite)
	if err != nil {
		return nil, err
	}
	if sources != "" {
		file := filepath.Join(m.temp, "host.sources")
		if err := os.WriteFile(file, []byte(sources), 0o644); err != nil {
			return nil, fmt.Errorf("write apt sources: %w", err)
		}
		args = append(args, file)
	}
	return args, nil
}

// tail passes lines on as progress and remembers the last ones.
type tail struct {
	note  func(Progress)
	part  string
	lines []string
}

func (t *tail) Write(p []byte) (int, error) {
	scan := bufio.NewScanner(strings.NewReader(t.part + string(p)))
	scan.Buffer(nil, 1<<20)
	scan.Split(bufio.ScanLines)
	t.part = ""
	for scan.Scan() {
		line := strings.TrimSpace(scan.Text())
		if line == "" {
			continue
		}
		if t.lines = append(t.lines, line); len(t.lines) > lastWords {
			t.lines = t.lines[1:]
		}
		if step, ok := strings.CutPrefix(line, "I: "); ok {
			t.note(Progress{Stage: "packages", Item: step})
		}
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.Join(t.lines, " | ") }
