package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/cgroup"
	"gaol/runtime/workspace"
)

// startLimit bounds the way from the request to a started program.
const startLimit = 30 * time.Second

// drainLimit bounds the reading of output after the sandbox has ended. All who
// could write are gone by then.
const drainLimit = time.Second

// Run performs one execution and returns when its result is complete; what is
// left to tear down goes on until Close. An error means that gaol could not do
// its part; then nothing of the execution is left but, perhaps, files that the
// program wrote into the caller's workspace.
//
// When ctx ends the sandbox is killed and the outcome is Canceled.
func (e *Engine) Run(ctx context.Context, req Request) (*Result, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	x := &execution{engine: e, req: req, stages: newStages()}
	defer e.later(ctx, x.teardown)
	if err := x.prepare(ctx); err != nil {
		return nil, err
	}
	if err := x.start(ctx); err != nil {
		if result := x.startFailure(err); result != nil {
			return result, nil
		}
		return nil, err
	}
	x.await(ctx)
	return x.conclude(ctx)
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
	for _, arg := range r.Command {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("%w: the argument %q has a NUL byte", ErrBadRequest, arg)
		}
	}
	for _, m := range r.Mounts {
		if err := CheckDestination(m.Destination); err != nil {
			return err
		}
	}
	if err := r.Policy.Validate(); err != nil {
		return err
	}
	return CheckEnv(r.Policy, r.Env)
}

// execution is the state of one Run.
type execution struct {
	engine *Engine
	req    Request
	stages stages

	plan      plan
	lease     *lease
	workspace *workspace.Dir // the request's, or a managed one
	managed   bool
	before    workspace.Listing
	group     *cgroup.Group
	sources   []*os.File
	frame     frame

	sandbox *sandbox
	control *control
	status  chan waited
	stdout  capture
	stderr  capture
	readers sync.WaitGroup

	mu      sync.Mutex
	verdict Outcome // decided by gaol, "" when the program ended by itself
	reason  string
	peak    int64 // of the watchdog

	began, ended time.Time
	exit         syscall.WaitStatus
	exitErr      error
}

type waited struct {
	status syscall.WaitStatus
	err    error
}

// prepare makes everything that a sandbox needs on disk.
func (x *execution) prepare(ctx context.Context) (err error) {
	e := x.engine
	if x.plan, err = newPlan(x.req.Policy, e.means); err != nil {
		return err
	}
	if x.lease, err = newLease(e.cfg.State, e.cfg.IDs); err != nil {
		return err
	}
	if err := x.openWorkspace(ctx); err != nil {
		return err
	}
	x.stages.mark("workspace")
	if e.hierarchy != nil {
		name := "gaol-" + x.lease.id
		x.lease.Cgroups = e.hierarchy.Paths(name)
		if err := x.lease.record(); err != nil {
			return err
		}
		if x.group, err = e.hierarchy.New(name, cgroupLimits(x.req.Policy.Limits)); err != nil {
			return err
		}
	}
	x.stages.mark("cgroup")
	if err := x.writeBundle(); err != nil {
		return err
	}
	x.stages.mark("bundle")
	return nil
}

func (x *execution) openWorkspace(ctx context.Context) (err error) {
	x.workspace = x.req.Workspace
	if x.workspace == nil {
		x.managed = true
		dir := x.lease.path("managed")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("make the workspace: %w", err)
		}
		if x.workspace, err = workspace.Open(dir, workspace.Rules{Roots: []string{"/"}}); err != nil {
			return err
		}
	}
	x.before, err = x.workspace.Scan(ctx, workspace.ScanLimits{})
	return err
}

// binds says where the sandbox's mounts come from, and as root, which private
// mounts bring them there.
func (x *execution) binds() (workspaceSource, rootfs, runsc string, binds []bind, private []privateMount, err error) {
	workspaceSource, rootfs, runsc = x.workspace.Path(), x.req.Rootfs.Path, x.engine.cfg.Runsc
	for _, m := range x.req.Mounts {
		binds = append(binds, bind{source: m.Source.Path(), destination: m.Destination})
	}
	if !x.engine.root {
		return workspaceSource, rootfs, runsc, binds, nil, nil
	}
	add := func(name string, source *os.File, directory bool, m privateMount) string {
		m.source, m.target, m.hostID = source, x.lease.path(name), x.lease.HostID
		if err == nil {
			err = makeMountPoint(m.target, directory)
		}
		private = append(private, m)
		return m.target
	}
	const locked = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	uid, gid := x.workspace.Owner()
	workspaceSource = add("workspace", x.workspace.File(), true, privateMount{attrs: locked, owner: &ids{uid, gid}})
	for i, m := range x.req.Mounts {
		uid, gid := m.Source.Owner()
		binds[i].source = add(fmt.Sprintf("mounts/%d", i), m.Source.File(), m.Source.IsDir(), privateMount{
			attrs: locked | unix.MOUNT_ATTR_RDONLY, owner: &ids{uid, gid}})
	}
	for _, f := range []struct{ name, path string }{{"image", rootfs}, {"runsc", runsc}} {
		file, openErr := os.OpenFile(f.path, unix.O_PATH, 0)
		if openErr != nil {
			return "", "", "", nil, nil, fmt.Errorf("open %s: %w", f.path, openErr)
		}
		x.sources = append(x.sources, file)
		add(f.name, file, false, privateMount{attrs: locked | unix.MOUNT_ATTR_RDONLY})
	}
	return workspaceSource, x.lease.path("image"), x.lease.path("runsc"), binds, private, err
}

// writeBundle writes the OCI bundle that runsc reads.
func (x *execution) writeBundle() error {
	l := x.lease
	if err := os.MkdirAll(bundleRoot(l), 0o755); err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	if err := os.Mkdir(l.path("r"), 0o700); err != nil {
		return fmt.Errorf("make runsc's root: %w", err)
	}
	if l.HostID != 0 {
		if err := os.Chown(l.path("r"), int(l.HostID), int(l.HostID)); err != nil {
			return fmt.Errorf("hand runsc's root to the host id: %w", err)
		}
	}
	return nil
}

// spec builds the OCI spec and writes it into the bundle.
func (x *execution) spec(workspaceSource, rootfs string, binds []bind) error {
	seccomp, err := x.req.Policy.SeccompProfile(goruntime.GOARCH)
	if err != nil {
		return err
	}
	args := x.req.Command
	if x.req.Code != nil {
		args = []string{"python3", "-I", "-c", guestProgram}
	}
	workDir := x.req.WorkDir
	if workDir == "" {
		workDir = workspacePath
	}
	spec := buildSpec(specInput{
		args: args, env: buildEnv(x.req.Policy, x.req.Rootfs.Env, x.req.Env), workDir: workDir,
		uid: x.req.Rootfs.UID, gid: x.req.Rootfs.GID,
		policy: x.req.Policy, seccomp: seccomp, rootfs: rootfs, root: bundleRoot(x.lease),
		workspace: workspaceSource, mounts: binds,
	})
	data, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode the OCI spec: %w", err)
	}
	if err := os.WriteFile(x.lease.path("bundle/config.json"), data, 0o644); err != nil {
		return fmt.Errorf("write the OCI spec: %w", err)
	}
	return nil
}

// start brings the program to life, and the readers of its output.
func (x *execution) start(ctx context.Context) error {
	workspaceSource, rootfs, runsc, binds, private, err := x.binds()
	if err != nil {
		return err
	}
	if err := x.spec(workspaceSource, rootfs, binds); err != nil {
		return err
	}
	if x.req.Code != nil {
		if x.frame, err = newFrame(x.req.Code, x.req.Policy.Python.DenyImports); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	l, err := launch(ctx, launchInput{lease: x.lease, runsc: runsc, mounts: private, group: x.group, affinity: x.plan.affinity})
	if err != nil {
		return err
	}
	x.stages.mark("create")
	x.sandbox = &sandbox{lease: x.lease, launched: l, ended: make(chan struct{})}
	go x.sandbox.watch()
	if err := x.recheckSources(); err != nil {
		return err
	}
	if x.control, err = dialControl(x.lease.path("r")); err != nil {
		return err
	}
	go x.feed()
	x.capture()
	x.began = time.Now()
	if err := x.control.start(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	x.stages.mark("start")
	x.mu.Unlock()
	x.follow()
	return nil
}

// recheckSources tells whether what was mounted by name is what was opened.
func (x *execution) recheckSources() error {
	for _, m := range x.req.Mounts {
		if err := m.Source.Recheck(); err != nil {
			return err
		}
	}
	if x.req.Workspace == nil {
		return nil
	}
	return x.workspace.Recheck()
}

// follow asks the sandbox for the program's wait status.
func (x *execution) follow() {
	x.status = make(chan waited, 1)
	go func() {
		status, err := x.control.wait(context.Background())
		_ = x.control.close() // or else the sandbox would not end by itself
		x.status <- waited{status, err}
	}()
}

// feed writes the code and the program's input. A program that does not read,
// or has ended, breaks the pipe: that is its own affair.
func (x *execution) feed() {
	defer x.sandbox.stdin.Close()
	if _, err := x.sandbox.stdin.Write(x.frame.data); err != nil || x.req.Stdin == nil {
		return
	}
	_, _ = io.Copy(x.sandbox.stdin, x.req.Stdin)
}

func (x *execution) capture() {
	limits := x.req.Policy.Limits
	over := func() { x.stop(OutputLimit, fmt.Sprintf("more than %s of output", limits.OutputTotal)) }
	var once sync.Once
	first := func() { once.Do(func() { x.mu.Lock(); x.stages.mark("first output"); x.mu.Unlock() }) }
	x.stdout = capture{keep: int(limits.Output), limit: int64(limits.OutputTotal), over: over, tee: x.req.Stdout, first: first}
	x.stderr = capture{keep: int(limits.Output), limit: int64(limits.OutputTotal), over: over, tee: x.req.Stderr, first: first, hold: x.frame.nonce}
	x.readers.Go(func() { _ = x.stdout.read(x.sandbox.stdout) })
	x.readers.Go(func() { _ = x.stderr.read(x.sandbox.stderr) })
}

// stop kills the sandbox for a reason. The first reason holds.
func (x *execution) stop(o Outcome, reason string) {
	x.mu.Lock()
	first := x.verdict == ""
	if first {
		x.verdict, x.reason = o, reason
	}
	x.mu.Unlock()
	if first {
		_ = x.sandbox.kill()
	}
}

// await returns when the program has ended, by itself or by us, and its output
// has been read to the end.
func (x *execution) await(ctx context.Context) {
	watching, done := context.WithCancel(context.WithoutCancel(ctx))
	var watchers sync.WaitGroup
	watchers.Go(func() { x.watchMemory(watching) })
	watchers.Go(func() { x.watchWorkspace(watching) })
	timeout := x.req.Policy.Limits.Timeout
	timer := time.NewTimer(time.Until(x.began.Add(timeout.Std())))
	defer timer.Stop()
	canceled := ctx.Done()
	for waiting := true; waiting; {
		select {
		case w := <-x.status:
			x.exit, x.exitErr = w.status, w.err
			waiting = false
		case <-timer.C:
			x.stop(Timeout, fmt.Sprintf("ran longer than %s", timeout))
		case <-canceled:
			canceled = nil
			x.stop(Canceled, context.Cause(ctx).Error())
		}
	}
	x.ended = time.Now()
	x.endSandbox()
	done()
	watchers.Wait()
}

// endSandbox waits for the sandbox to go, which it does by itself when the
// program has ended; one that does not is killed.
func (x *execution) endSandbox() {
	select {
	case <-x.sandbox.ended:
	case <-time.After(drainLimit):
		_ = x.sandbox.kill()
		<-x.sandbox.ended
	}
	deadline := time.Now().Add(drainLimit)
	_ = x.sandbox.stdout.SetReadDeadline(deadline)
	_ = x.sandbox.stderr.SetReadDeadline(deadline)
	x.readers.Wait()
	x.stages.mark("end")
}

// teardown removes what is left of the execution.
func (x *execution) teardown(ctx context.Context) error {
	var errs []error
	if s := x.sandbox; s != nil {
		errs = append(errs, s.kill())
		<-s.ended
		errs = append(errs, s.reapGofer(ctx), s.pidfd.Close())
		s.closePipes()
	}
	if x.control != nil {
		errs = append(errs, x.control.close())
	}
	for _, f := range x.sources {
		errs = append(errs, f.Close())
	}
	if x.managed {
		errs = append(errs, x.workspace.Close())
	}
	if x.group != nil {
		errs = append(errs, x.group.Kill(ctx), x.group.Remove(ctx))
	}
	if x.lease != nil {
		errs = append(errs, x.lease.release(ctx, x.engine.cfg.State))
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil || errors.Is(err, os.ErrClosed) })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("tear down execution %s: %w", x.lease.id, errors.Join(errs...))
}
