package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// interrupts are the signals that end gaol in order.
var interrupts = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// interruptible ends ctx at the first of the interrupts; the second ends gaol
// at once, and the next command cleans up. What whoever started gaol had it
// ignore (nohup) stays ignored.
func interruptible(ctx context.Context) (_ context.Context, interrupted func() syscall.Signal, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	for _, s := range interrupts {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	var got atomic.Int64
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if n, ok := s.(syscall.Signal); ok && !got.CompareAndSwap(0, int64(n)) {
					os.Exit(exitSignal + int(n))
				}
				cancel(errors.New(interruptText(syscall.Signal(got.Load()))))
			case <-done:
				return
			}
		}
	}()
	interrupted = func() syscall.Signal { return syscall.Signal(got.Load()) }
	return ctx, interrupted, func() { signal.Stop(signals); close(done); cancel(nil) }
}

func interruptText(s syscall.Signal) string { return fmt.Sprintf("interrupted (%s)", signalName(s)) }

// catchBrokenPipe makes a write to a pipe that nobody reads an error; without it
// the kernel would end gaol there and leave the sandbox running.
func catchBrokenPipe() (stop func()) {
	pipe := make(chan os.Signal, 1) // never read: the write's error says it all
	signal.Notify(pipe, syscall.SIGPIPE)
	return func() { signal.Stop(pipe) }
}

// readUntil reads from r, and ends with ctx even while a read waits.
func readUntil(ctx context.Context, r io.Reader) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		_, err := io.Copy(writer, r)
		_ = writer.CloseWithError(err) // nil is the end of file
	}()
	context.AfterFunc(ctx, func() { _ = reader.CloseWithError(context.Cause(ctx)) })
	return reader
}
