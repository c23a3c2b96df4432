package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gaol/images"
	"gaol/policy"
	"gaol/runtime"
)

func newRunCommand(a *app) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [flags] FILE|- [ARG...] | run [flags] -- COMMAND [ARG...]",
		Short: "Run code or a command in a fresh sandbox",
		Long: `Run a Python file, Python code from standard input (-), or any command of the
image (--) in a sandbox that is made for it and destroyed afterwards. The program
may write the workspace and nothing else; it has no network. Flags may follow the
file; arguments of the program that begin with - go after --. The program's
standard input is empty; -i gives it gaol's.

Its output goes to standard output and standard error untouched (made safe on a
terminal, see --raw); gaol's own words go to standard error.

Exit code: the program's own; 123 stopped at its output or disk limit, 124
timeout, 125 gaol could not, 126 denied or not executable, 127 not found,
128+n ended by signal n, 137 out of memory, 129/130/131/143 interrupted, 141
nobody reads the output any more.`,
		Example: `  gaol run report.py --workspace ./data
  echo 'print(6*7)' | gaol run -
  gaol run -m 512m --cpus 2 --timeout 10s -v /srv/tables:/workspace/in:ro report.py
  gaol run convert.py -- --input /workspace/in.csv -v
  sort names.txt | gaol run -i count.py
  gaol run --image python -- python3 -c 'import sys; print(sys.version)'
  gaol run --json report.py | jq .outcome`,
		RunE: func(c *cobra.Command, args []string) error {
			err := a.run(c.Context(), f, args, c.ArgsLenAtDash())
			if exit := exitError(0); f.json && err != nil && !errors.As(err, &exit) {
				return errors.Join(err, encodeJSON(a.stdout, noResultJSON{Outcome: "error", Reason: err.Error()}))
			}
			return err
		},
	}
	f.register(c)
	return c
}

func (a *app) run(ctx context.Context, f *runFlags, args []string, dash int) error {
	if err := f.check(); err != nil {
		return err
	}
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	effective, notes, err := f.policy(cfg)
	if err != nil {
		return err
	}
	if !f.quiet {
		for _, note := range notes {
			say(a.stderr, "note", note)
		}
	}
	req := runtime.Request{Policy: effective, WorkDir: f.workDir}
	if err := a.program(&req, f, args, dash); err != nil {
		return err
	}
	if req.Env, err = f.environment(); err != nil {
		return err
	}
	undo, err := f.openPaths(&req, cfg)
	if err != nil {
		return err
	}
	defer undo()
	rootfs, err := f.resolve(ctx, cfg, effective)
	if err != nil {
		return err
	}
	defer rootfs.Close()
	req.Rootfs = rootfsOf(rootfs)
	return a.execute(ctx, f, cfg, req, notes)
}

// execute runs the request and prints its result.
func (a *app) execute(ctx context.Context, f *runFlags, cfg *config, req runtime.Request, notes []string) error {
	engine, closeEngine, err := a.openEngine(ctx, cfg)
	if err != nil {
		return err
	}
	defer closeEngine()
	ctx, interrupted, stop := interruptible(ctx)
	defer stop()
	kept := ""
	if f.keep {
		if req.Workspace, err = cfg.keptWorkspace(); err != nil {
			return err
		}
		defer req.Workspace.Close()
		kept = req.Workspace.Path()
	}
	ctx, out := a.output(ctx, f, &req)
	result, err := engine.Run(ctx, req)
	if kept != "" && (err != nil || result.Outcome == runtime.StartFailed) && os.Remove(kept) == nil {
		kept = "" // nothing ran in it
	}
	outErr, sig := out.end(), interrupted()
	switch {
	case sig != 0 && err != nil:
		return a.printInterrupted(f, sig)
	case outErr != nil:
		return outErr
	case err != nil:
		return err
	}
	if err := a.printResult(f, result, kept, notes); err != nil {
		return err
	}
	return exitOf(result, sig)
}

// openEngine opens the runtime and removes what dead owners left. Neither that
// nor what could not be torn down changes a result, but it must not be silent.
func (a *app) openEngine(ctx context.Context, cfg *config) (_ *runtime.Engine, closeEngine func(), err error) {
	engine, err := cfg.engine(ctx)
	if err != nil {
		return nil, nil, err
	}
	warn := func(err error) {
		if err != nil {
			say(a.stderr, "warning", err.Error())
		}
	}
	_, err = engine.Reap(ctx)
	warn(err)
	return engine, func() { warn(engine.Close()) }, nil
}

// resolve finds the image and holds it.
func (f *runFlags) resolve(ctx context.Context, cfg *config, p policy.Policy) (*images.Rootfs, error) {
	ref := f.image
	if ref == "" {
		ref = cfg.Image
	}
	store, err := cfg.store()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	rootfs, err := store.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !imageAllowed(p.Images.Allowed, ref, rootfs) {
		_ = rootfs.Close()
		return nil, fmt.Errorf("the policy does not allow image %s (%s): images.allowed lists %s", ref, rootfs.Digest, strings.Join(p.Images.Allowed, ", "))
	}
	return rootfs, nil
}

// rootfsOf introduces an image to the runtime.
func rootfsOf(r *images.Rootfs) runtime.Rootfs {
	return runtime.Rootfs{Path: r.Path, Digest: r.Digest.String(), Env: r.Config.Env, UID: r.Config.UID, GID: r.Config.GID}
}

func imageAllowed(allowed []string, ref string, rootfs *images.Rootfs) bool {
	for _, a := range allowed {
		if a == "*" || a == ref || a == rootfs.Reference || a == rootfs.Digest.String() {
			return true
		}
	}
	return false
}
