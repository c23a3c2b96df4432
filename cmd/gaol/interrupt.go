package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// interruptible ends ctx at the first SIGINT or SIGTERM; the second ends gaol
// at once, and the next command cleans up.
func interruptible(ctx context.Context) (_ context.Context, interrupted func() syscall.Signal, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	var got atomic.Int64
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if n, ok := s.(syscall.Signal); ok && !got.CompareAndSwap(0, int64(n)) {
					os.Exit(exitSignal + int(n))
				}
				cancel(fmt.Errorf("interrupted by %s", s))
			case <-done:
				return
			}
		}
	}()
	interrupted = func() syscall.Signal { return syscall.Signal(got.Load()) }
	return ctx, interrupted, func() { signal.Stop(signals); close(done); cancel(nil) }
}
