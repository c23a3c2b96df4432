package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"gaol/runtime/workspace"
)

// memoryInterval is how often the watchdog looks at memory. A program that
// touches 4 GiB a second gets 20 MiB past its limit in that time.
const memoryInterval = 5 * time.Millisecond

// watchMemory kills a sandbox that holds more memory than it may, where no
// cgroup does that.
func (x *execution) watchMemory(ctx context.Context) {
	if !x.plan.watchRSS {
		return
	}
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", x.sandbox.pid))
	if err != nil {
		return // it has ended already
	}
	defer status.Close()
	limit := x.req.Policy.Limits.Memory
	tick := time.NewTicker(memoryInterval)
	defer tick.Stop()
	buf := make([]byte, 4096)
	for {
		n, err := status.ReadAt(buf, 0)
		if n == 0 && err != nil {
			return
		}
		held := heldMemory(buf[:n])
		x.mu.Lock()
		x.peak = max(x.peak, held)
		x.mu.Unlock()
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

// heldMemory is what a process holds that is not a file's, from /proc/PID/status.
// The memory of the sandboxed program is a memfd of the sandbox process.
func heldMemory(status []byte) int64 {
	var total int64
	for line := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		if n := string(name); n != "RssAnon" && n != "RssShmem" {
			continue
		}
		kib, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
		if err == nil {
			total += kib << 10
		}
	}
	return total
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
			return // the end of the execution; conclude looks once more
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
	if err != nil && !errors.Is(err, workspace.ErrNotExist) {
		return "", err
	}
	switch {
	case use.Bytes > int64(limits.Workspace):
		return fmt.Sprintf("the workspace holds more than %s", limits.Workspace), nil
	case use.Entries > limits.WorkspaceFiles:
		return fmt.Sprintf("the workspace holds more than %d entries", limits.WorkspaceFiles), nil
	}
	return "", nil
}
