package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

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
	gauge   *gauge // nil where a cgroup holds the memory limit
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
	if x.lease, err = newLease(ctx, e.cfg.State, e.cfg.IDs); err != nil {
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

// teardown removes what is left of the execution.
func (x *execution) teardown(ctx context.Context) error {
	var errs []error
	if s := x.sandbox; s != nil {
		errs = append(errs, s.kill())
		<-s.ended
		errs = append(errs, s.reapGofer(ctx), s.pidfd.Close())
		s.closePipes()
	}
	if x.gauge != nil {
		x.gauge.close()
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
