package main

import (
	"context"
	"fmt"
	"io"
	"syscall"

	"gaol/runtime"
)

// output wires the program's streams to ours and returns how to end that. The
// context ends when ours can no longer be written.
func (a *app) output(ctx context.Context, f *runFlags, req *runtime.Request) (context.Context, *output) {
	ctx, cancel := context.WithCancelCause(ctx)
	out := &output{cancel: cancel}
	if f.json {
		return ctx, out
	}
	wire := func(s *stream) io.Writer {
		s.onError(cancel)
		out.streams = append(out.streams, s)
		if f.raw || !isTerminal(s) {
			return s
		}
		safe := &safeWriter{w: s}
		out.safe = append(out.safe, safe)
		return safe
	}
	req.Stdout, req.Stderr = wire(a.stdout), wire(a.stderr)
	return ctx, out
}

// output is the way of a program's output through gaol.
type output struct {
	cancel  context.CancelCauseFunc
	streams []*stream
	safe    []*safeWriter
}

// end prints what is left. The error says that output was lost.
func (o *output) end() error {
	defer o.cancel(nil)
	for _, s := range o.safe {
		if err := s.flush(); err != nil {
			break // the stream below remembers it
		}
	}
	for _, s := range o.streams {
		if err := s.failure(); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printResult(f *runFlags, r *runtime.Result, kept string, notes []string) error {
	if f.json {
		return encodeJSON(a.stdout, newResultJSON(r, kept, notes))
	}
	switch {
	case !f.quiet:
		fmt.Fprint(a.stderr, summary(r, f.workspace == "" && kept == ""))
	case r.Outcome == runtime.Canceled:
		fmt.Fprintf(a.stderr, "gaol: %s\n", howText(r))
	}
	if kept != "" {
		fmt.Fprintf(a.stderr, "gaol: workspace kept in %s\n", lineText(kept)) // it was asked for
	}
	if f.receipt {
		fmt.Fprint(a.stderr, receiptText(r))
	}
	return nil
}

// printInterrupted says that an interrupt came before there was a result.
func (a *app) printInterrupted(f *runFlags, s syscall.Signal) error {
	fmt.Fprintf(a.stderr, "gaol: %s: %s\n", runtime.Canceled, interruptText(s))
	if f.json {
		if err := encodeJSON(a.stdout, noResultJSON{Outcome: runtime.Canceled, Reason: interruptText(s)}); err != nil {
			return err
		}
	}
	return exitError(exitSignal + int(s))
}
