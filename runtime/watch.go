package runtime

import (
	"context"
	"fmt"
	"time"

	"gaol/runtime/workspace"
)

// memoryInterval is how often the watchdog looks at memory. A program that
// touches 4 GiB a second gets 20 MiB past its limit in that time.
const memoryInterval = 5 * time.Millisecond

// watchMemory kills a sandbox that holds more memory than it may, where no
// cgroup does that.
func (x *execution) watchMemory(ctx context.Context) {
	if x.gauge == nil {
		return
	}
	limit := x.req.Policy.Limits.Memory
	tick := time.NewTicker(memoryInterval)
	defer tick.Stop()
	for {
		held, err := x.gauge.read()
		if err != nil {
			if !x.sandbox.ending(ctx) {
				x.fail(err)
			}
			return
		}
		x.peak = max(x.peak, held)
		if held > int64(limit) {
			x.stop(OOM, fmt.Sprintf("held %d bytes of memory, more than %s", held, limit))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// The watchdog of the workspace rests at least workspaceRest, and spends at
// most one part in workspaceShare of the time looking.
const (
	workspaceRest  = 100 * time.Millisecond
	workspaceShare = 10
)

// watchWorkspace kills a sandbox whose workspace holds more than it may. What
// was there before the execution counts: the limit is on the directory.
func (x *execution) watchWorkspace(ctx context.Context) {
	for {
		began := time.Now()
		over, err := x.overWorkspace(ctx)
		if err != nil {
			if ctx.Err() == nil {
				x.fail(err)
			}
			return
		}
		if over != "" {
			x.stop(DiskLimit, over)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(workspaceRest, workspaceShare*time.Since(began))):
		}
	}
}

// overWorkspace says which limit the workspace exceeds, "" when it is within.
func (x *execution) overWorkspace(ctx context.Context) (string, error) {
	limits := x.req.Policy.Limits
	use, err := x.workspace.Usage(ctx, workspace.UsageLimits{Bytes: int64(limits.Workspace), Entries: limits.WorkspaceFiles, Unlock: true})
	if err != nil {
		return "", err
	}
	if x.sandbox != nil {
		unlinked, err := x.sandbox.unlinkedBytes(x.workspace.File())
		if err != nil && !x.sandbox.ending(ctx) {
			return "", err
		}
		use.Bytes += unlinked
	}
	switch {
	case use.Bytes > int64(limits.Workspace):
		return fmt.Sprintf("the workspace holds more than %s", limits.Workspace), nil
	case use.Entries > limits.WorkspaceFiles:
		return fmt.Sprintf("the workspace holds more than %d entries", limits.WorkspaceFiles), nil
	}
	return "", nil
}
