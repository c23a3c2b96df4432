package runtime

import (
	"context"
	"fmt"
	"sync"
	"time"
)

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
