package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"gaol/runtime/cgroup"
	"gaol/runtime/workspace"
)

// startLimit bounds the way from the request to a started program.
const startLimit = 30 * time.Second

// Run performs one execution and returns when its result is complete; what is
// left to tear down goes on until Close. It waits as long as req.Stdout and
// req.Stderr take to accept the output.
//
// An error means that gaol could not do its part. When the program had been
// started by then, the result beside the error holds the output and the changed
// files, as far as they are known.
//
// When ctx ends the sandbox is killed: the outcome is Canceled, or, before the
// program was started, the error is the cause.
func (e *Engine) Run(ctx context.Context, req Request) (*Result, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	x := &execution{engine: e, req: req, stages: newStages()}
	defer e.later(ctx, x.teardown)
	if err := x.prepare(ctx); err != nil {
		return nil, canceledOr(ctx, err)
	}
	startErr := x.start(ctx)
	if startErr == nil {
		x.await(ctx)
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	settleErr := x.settle(settling)
	if startErr != nil {
		if result := x.startFailure(startErr); result != nil {
			return result, settleErr
		}
		return nil, errors.Join(canceledOr(ctx, x.explain(startErr)), settleErr)
	}
	return x.conclude(settling, settleErr)
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
	absent    []string // paths of mounts that the workspace did not hold
	changed   []workspace.Change
	filesNote string
	stripped  int // files that lost set-id bits
	group     *cgroup.Group
	sources   []*os.File
	frame     frame

	launching bool // from here on there may be processes
	sandbox   *sandbox
	control   *control
	gauge     *gauge // nil where a cgroup holds the memory limit
	status    chan waited
	stdout    capture
	stderr    capture
	readers   sync.WaitGroup

	stdoutErr, stderrErr error // of reading, once the readers are done

	mu      sync.Mutex
	verdict Outcome // decided by gaol, "" when the program ended by itself
	reason  string
	peak    int64 // of the watchdog
	failure error // what gaol itself could not go on with

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
	if x.lease, err = newLease(ctx, e.cfg.State, e.cfg.IDs); err != nil {
		return err
	}
	if err := x.openWorkspace(ctx); err != nil {
		return err
	}
	x.stages.mark("workspace")
	if e.hierarchy != nil {
		x.lease.Cgroups = e.hierarchy.Paths(x.lease.group())
		if err := x.lease.record(); err != nil {
			return err
		}
		if x.group, err = e.hierarchy.New(x.lease.group(), cgroupLimits(x.req.Policy.Limits)); err != nil {
			return err
		}
	}
	x.stages.mark("cgroup")
	return nil
}

func (x *execution) openWorkspace(ctx context.Context) (err error) {
	x.workspace = x.req.Workspace
	if x.workspace == nil {
		dir := x.lease.path("managed")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("make the workspace: %w", err)
		}
		if x.workspace, err = workspace.Open(dir, workspace.Rules{Roots: []string{"/"}}); err != nil {
			return err
		}
		x.managed = true
	}
	if !x.engine.root && !utf8.ValidString(x.workspace.Path()) {
		return fmt.Errorf("%w: the workspace's path %q is not UTF-8, as an OCI spec must be", ErrBadRequest, x.workspace.Path())
	}
	if x.before, err = x.workspace.Scan(ctx, workspace.ScanLimits{}); err != nil {
		return err
	}
	if over, err := x.overWorkspace(ctx); err != nil || over != "" {
		return cmp.Or(err, fmt.Errorf("%w: %s already", ErrBadRequest, over))
	}
	return x.noteMountPoints()
}

// teardown removes what is left of the execution. When something cannot be
// removed the lease stays, so that the next Reap knows of it.
func (x *execution) teardown(ctx context.Context) error {
	var errs []error
	switch {
	case x.sandbox != nil:
		errs = append(errs, x.sandbox.kill(), x.sandbox.gone(ctx), x.sandbox.endGofer(ctx))
		x.sandbox.close()
	case x.launching:
		errs = append(errs, killByArgument(ctx, x.lease.dir))
	}
	if x.gauge != nil {
		x.gauge.close()
	}
	if x.control != nil {
		errs = append(errs, x.control.close())
	}
	for _, f := range x.sources {
		_ = f.Close()
	}
	if x.managed {
		_ = x.workspace.Close()
	}
	if x.group != nil {
		errs = append(errs, x.group.Kill(ctx), x.group.Remove(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		x.lease.abandon()
		return fmt.Errorf("tear down execution %s: %w", x.lease.id, err)
	}
	if x.lease == nil {
		return nil
	}
	return x.lease.release(ctx, x.engine.cfg.State)
}
