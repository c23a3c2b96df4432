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

// fail kills the sandbox because gaol cannot do its part any more.
func (x *execution) fail(err error) {
	x.mu.Lock()
	if x.failure == nil {
		x.failure = err
	}
	x.mu.Unlock()
	_ = x.sandbox.kill()
}

// await returns when the program has ended, by itself or by us.
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
			if len(x.status) > 0 {
				continue // it ended in time, and we were late to look
			}
			x.stop(Timeout, fmt.Sprintf("ran longer than %s", timeout))
		case <-canceled:
			canceled = nil
			x.stop(Canceled, context.Cause(ctx).Error())
		}
	}
	x.ended = time.Now()
	done()
	watchers.Wait()
}
