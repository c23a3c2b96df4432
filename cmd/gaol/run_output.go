package main

import (
	"fmt"
	"io"

	"gaol/runtime"
)

// output wires the program's streams to ours and returns how to end that.
func (a *app) output(f *runFlags, req *runtime.Request) flushers {
	if f.json {
		return nil
	}
	var out flushers
	wire := func(w io.Writer) io.Writer {
		if f.raw || !isTerminal(w) {
			return w
		}
		s := &safeWriter{w: w}
		out = append(out, s)
		return s
	}
	req.Stdout, req.Stderr = wire(a.stdout), wire(a.stderr)
	return out
}

type flushers []*safeWriter

func (f flushers) flush() error {
	for _, s := range f {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printResult(f *runFlags, r *runtime.Result, kept string) error {
	if f.json {
		return encodeJSON(a.stdout, newResultJSON(r, kept))
	}
	if !f.quiet {
		fmt.Fprint(a.stderr, summary(r, kept))
	}
	if f.receipt {
		fmt.Fprint(a.stderr, receiptText(r))
	}
	return nil
}
