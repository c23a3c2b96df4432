package runtime

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// start brings the program to life, and the readers of its output.
func (x *execution) start(ctx context.Context) error {
	p, err := x.locate()
	if err != nil {
		return err
	}
	if err := x.writeBundle(p); err != nil {
		return err
	}
	x.stages.mark("bundle")
	if x.req.Code != nil {
		if x.frame, err = newFrame(x.req.Code, x.req.Policy.Python.DenyImports); err != nil {
			return err
		}
	}
	// A runsc that is killed in its midst leaves processes that nobody reaps, so
	// whoever cancels waits until it is done, and the sandbox goes as a whole.
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	x.launching = true
	l, err := launch(whole, launchInput{lease: x.lease, runsc: p.runsc, mounts: p.private, group: x.group, affinity: x.plan.affinity})
	if err != nil {
		return err
	}
	x.stages.mark("create")
	x.sandbox = &sandbox{launched: l, ended: make(chan struct{})}
	go x.sandbox.watch(ctx)
	if err := x.recheckSources(); err != nil {
		return err
	}
	if x.plan.watch {
		if x.gauge, err = newGauge(l.pid); err != nil {
			return err
		}
	}
	if x.control, err = dialControl(x.lease.path("r")); err != nil {
		return err
	}
	go x.feed(l.stdin)
	x.capture()
	x.began = time.Now()
	starting, stop := context.WithTimeout(ctx, startLimit)
	defer stop()
	if err := x.control.start(starting); err != nil {
		return err
	}
	x.mu.Lock()
	x.stages.mark("start")
	x.mu.Unlock()
	x.follow(ctx)
	return nil
}

// recheckSources looks, before the program starts, whether the names that an
// ordinary user's gofer mounted still lead to what was opened. Root mounts what
// was opened itself.
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

// follow asks the sandbox for the program's wait status. It outlives ctx, which
// bounds the start: the answer comes when the program ends.
func (x *execution) follow(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	x.status = make(chan waited, 1)
	go func() {
		status, err := x.control.wait(ctx)
		_ = x.control.close() // or else the sandbox would not end by itself
		x.status <- waited{status, err}
	}()
}

// feed writes the code and the program's input. A program that does not read,
// or has ended, breaks the pipe: that is its own affair.
func (x *execution) feed(stdin *os.File) {
	defer stdin.Close()
	if _, err := stdin.Write(x.frame.data); err != nil || x.req.Stdin == nil {
		return
	}
	_, _ = io.Copy(stdin, x.req.Stdin)
}

func (x *execution) capture() {
	limits := x.req.Policy.Limits
	over := func() { x.stop(OutputLimit, fmt.Sprintf("more than %s of output", limits.OutputTotal)) }
	var once sync.Once
	first := func() { once.Do(func() { x.mu.Lock(); x.stages.mark("first output"); x.mu.Unlock() }) }
	x.stdout = capture{keep: int(limits.Output), limit: int64(limits.OutputTotal), over: over, tee: x.req.Stdout, first: first}
	x.stderr = capture{keep: int(limits.Output), limit: int64(limits.OutputTotal), over: over, tee: x.req.Stderr, first: first, hold: x.frame.nonce}
	x.readers.Go(func() { x.stdoutErr = x.stdout.read(x.sandbox.stdout) })
	x.readers.Go(func() { x.stderrErr = x.stderr.read(x.sandbox.stderr) })
}
