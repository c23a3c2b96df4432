package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/cgroup"
)

// runscFlags are always on. Without --oci-seccomp gVisor ignores the profile;
// cgroups are gaol's own business, since runsc never has the right to make any.
var runscFlags = []string{
	"--network=none", "--oci-seccomp", "--host-uds=none", "--host-fifo=none",
	"--overlay2=none", "--ignore-cgroups", "--cpu-num-from-quota", "--host-settings=ignore",
}

// containerID is runsc's name for every container of ours, each in a root
// directory of its own: short, since it is part of a socket's path.
const containerID = "s"

// launchInput is what starting a sandbox takes.
type launchInput struct {
	lease    *lease
	runsc    string // path as runsc's own process sees it
	mounts   []privateMount
	group    *cgroup.Group // nil for none
	affinity int
}

// launched is a sandbox whose container has been created and not started.
type launched struct {
	pid                   int      // of the sandbox process, a child of ours
	pidfd                 *os.File // of the same
	gofer                 *os.File // pidfd of the file server, nil when there is none
	goferPID              int
	stdin, stdout, stderr *os.File // gaol's ends of the pipes
}

func (l *launched) close() {
	for _, f := range []*os.File{l.stdin, l.stdout, l.stderr, l.pidfd, l.gofer} {
		if f != nil {
			_ = f.Close() // the pipe to stdin may be closed already
		}
	}
}

// launch runs `runsc create`: one command that makes the sandbox and ends.
// What follows goes through the sandbox's own control socket.
func launch(ctx context.Context, in launchInput) (_ *launched, err error) {
	var ours, theirs [3]*os.File // stdin, stdout, stderr
	defer func() {
		closeAll(theirs[:])
		if err != nil {
			closeAll(ours[:])
		}
	}()
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	if err := createSandbox(ctx, in, theirs[:]); err != nil {
		var failed *exec.ExitError
		if ctx.Err() == nil && errors.As(err, &failed) {
			closeAll(theirs[:])
			return nil, fmt.Errorf("create the sandbox: runsc: %s", readComplaint(ours[2]))
		}
		return nil, err
	}
	l := &launched{stdin: ours[0], stdout: ours[1], stderr: ours[2]}
	if err := l.adopt(in); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func closeAll(files []*os.File) {
	for i, f := range files {
		if f != nil {
			_ = f.Close()
			files[i] = nil
		}
	}
}

// readComplaint reads what runsc wrote to stderr before it gave up. Nothing
// else can have written there: no program was started.
func readComplaint(stderr *os.File) string {
	_ = stderr.SetReadDeadline(time.Now().Add(time.Second))
	text, _ := io.ReadAll(io.LimitReader(stderr, 64<<10))
	if len(text) == 0 {
		return "ended without a word"
	}
	return strings.TrimSpace(string(text))
}

// createSandbox runs runsc on a thread of its own, in the namespaces and cgroup
// of the sandbox. The thread lives as long as runsc does: the kernel takes a
// dead thread for a dead parent, and kills runsc.
func createSandbox(ctx context.Context, in launchInput, files []*os.File) error {
	done := make(chan error, 1)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread dies with this goroutine
		if unix.Gettid() != os.Getpid() {
			done <- runCreate(ctx, in, files)
			return
		}
		// The first thread cannot die. While it is held here, the next
		// goroutine gets another one.
		done <- createSandbox(ctx, in, files)
		goruntime.UnlockOSThread()
	}()
	return <-done
}

func runCreate(ctx context.Context, in launchInput, files []*os.File) error {
	cmd, err := createCommand(ctx, in)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", in.runsc, explainNoUserns(err))
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("create the sandbox: %w", context.Cause(ctx))
		}
		return fmt.Errorf("create the sandbox: %w", err)
	}
	return nil
}

// outerNamespace is the user namespace that carries the host id, so that what
// runsc sees, and with it every snapshot, is the same for all.
func outerNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
		// A Ctrl-C at the terminal is for gaol alone.
		Setpgid:    true,
		Credential: &syscall.Credential{Uid: insideID, Gid: insideID, NoSetGroups: true},
	}
}

// createCommand enters, with the calling thread, what the command is to be born
// in, and returns the command.
func createCommand(ctx context.Context, in launchInput) (*exec.Cmd, error) {
	attr := outerNamespace()
	if in.lease.HostID != 0 {
		attr.UidMappings[0].HostID = int(in.lease.HostID)
		attr.GidMappings[0].HostID = int(in.lease.HostID)
		attr.GidMappingsEnableSetgroups = true
		attr.Credential.NoSetGroups = false
		if err := enterPrivateMounts(in.mounts); err != nil {
			return nil, err
		}
	}
	if in.group != nil {
		if err := in.group.JoinThread(); err != nil {
			return nil, err
		}
		in.group.Place(attr)
	}
	if in.affinity > 0 {
		if err := restrictCPUs(in.affinity); err != nil {
			return nil, err
		}
	}
	args := append([]string{"--root=" + in.lease.path("r"), "--log=" + in.lease.path("r/log")}, runscFlags...)
	args = append(args, "create", "--pid-file="+in.lease.path("r/pid"), "--bundle="+in.lease.path("bundle"), containerID)
	cmd := exec.CommandContext(ctx, in.runsc, args...)
	// The gofer keeps its launcher's environment readable in /proc.
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{}, "/", attr
	return cmd, nil
}

// restrictCPUs keeps the calling thread, and what it starts, on n of the
// processors it may use, from one chosen by chance on.
func restrictCPUs(n int) error {
	var all, some unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("read the processors to run on: %w", err)
	}
	var cpus []int
	for i := 0; len(cpus) < all.Count(); i++ {
		if all.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	first := int(time.Now().UnixNano() % int64(len(cpus)))
	for i := range min(n, len(cpus)) {
		some.Set(cpus[(first+i)%len(cpus)])
	}
	if err := unix.SchedSetaffinity(0, &some); err != nil {
		return fmt.Errorf("restrict the processors to run on: %w", err)
	}
	return nil
}
