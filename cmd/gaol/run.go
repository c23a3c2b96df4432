package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gaol/images"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/workspace"
)

// runFlags are the flags of `gaol run`. Names and units are docker's where
// docker has them.
type runFlags struct {
	image, policyFile         string
	workspace, workDir        string
	env, envFiles, mounts     []string
	memory, cpus, timeout     string
	pids                      int
	denyImports               []string
	json, receipt, raw, quiet bool
	keep                      bool
}

func newRunCommand(a *app) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [flags] FILE|- [ARG...] | run [flags] -- COMMAND [ARG...]",
		Short: "Run code or a command in a fresh sandbox",
		Long: `Run a Python file, Python code from standard input (-), or any command of the
image (--) in a sandbox that is made for it and destroyed afterwards. The program
may write the workspace and nothing else; it has no network.

Its output goes to standard output and standard error untouched (made safe on a
terminal, see --raw); gaol's own words go to standard error.

Exit code: the program's own; 123 stopped at its output or disk limit, 124
timeout, 125 gaol could not, 126 denied or not executable, 127 not found,
128+n ended by signal n, 130/143 interrupted, 137 out of memory.`,
		Example: `  gaol run report.py --workspace ./data
  echo 'print(6*7)' | gaol run -
  gaol run -m 512m --cpus 2 --timeout 10s -v /srv/tables:/workspace/in:ro report.py
  gaol run --image python -- python3 -c 'import sys; print(sys.version)'
  gaol run --json report.py | jq .outcome`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c.Context(), f, args, c.ArgsLenAtDash())
		},
	}
	c.Flags().SortFlags = false
	flags := c.Flags()
	flags.StringVar(&f.image, "image", "", "`reference` of the image (default: image in config.toml)")
	flags.StringVar(&f.workspace, "workspace", "", "`directory` that the program may write, at /workspace inside (default: a temporary one)")
	flags.StringVarP(&f.workDir, "workdir", "w", "", "working `directory` inside (default /workspace)")
	flags.BoolVar(&f.keep, "keep", false, "keep the temporary workspace and say where it is")
	flags.StringArrayVarP(&f.mounts, "volume", "v", nil, "show a host path read-only inside: `SRC:DST:ro`")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set `NAME=VALUE` inside; NAME alone takes the value from gaol's environment")
	flags.StringArrayVar(&f.envFiles, "env-file", nil, "read NAME=VALUE lines from `file`")
	flags.StringVarP(&f.memory, "memory", "m", "", "memory limit, such as `512m`")
	flags.StringVar(&f.cpus, "cpus", "", "processors' worth of time, such as `1.5`")
	flags.IntVar(&f.pids, "pids-limit", 0, "processes and threads inside")
	flags.StringVar(&f.timeout, "timeout", "", "wall time, such as `30s`")
	flags.StringVar(&f.policyFile, "policy", "", "narrow the policy by this `file`")
	flags.StringArrayVar(&f.denyImports, "deny-import", nil, "refuse code that imports `module` (advice, not a boundary)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object: outcome, output, files, usage, receipt")
	flags.BoolVar(&f.receipt, "receipt", false, "print how each limit was enforced, and each stage's time")
	flags.BoolVar(&f.raw, "raw", false, "do not make output safe for the terminal")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing of gaol's own but errors")
	return c
}

func (a *app) run(ctx context.Context, f *runFlags, args []string, dash int) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	effective, err := f.policy(cfg)
	if err != nil {
		return err
	}
	if !f.quiet {
		for _, clamp := range effective.Clamps {
			fmt.Fprintf(a.stderr, "gaol: note: %s\n", safeText(clamp.String()))
		}
	}
	req := runtime.Request{Policy: effective.Policy, WorkDir: f.workDir}
	if err := a.program(&req, args, dash); err != nil {
		return err
	}
	if req.Env, err = f.environment(); err != nil {
		return err
	}
	kept, undo, err := f.openPaths(&req, cfg)
	if err != nil {
		return err
	}
	defer undo()
	rootfs, err := f.resolve(ctx, cfg, effective.Policy)
	if err != nil {
		return err
	}
	defer rootfs.Close()
	req.Rootfs = rootfsOf(rootfs)
	return a.execute(ctx, f, cfg, req, kept)
}

// execute runs the request and prints its result.
func (a *app) execute(ctx context.Context, f *runFlags, cfg *config, req runtime.Request, kept string) (err error) {
	engine, err := cfg.engine(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// The result is out; what could not be torn down must not be silent.
		if closeErr := engine.Close(); closeErr != nil {
			fmt.Fprintf(a.stderr, "gaol: warning: %s\n", safeText(closeErr.Error()))
		}
	}()
	if _, err := engine.Reap(ctx); err != nil {
		fmt.Fprintf(a.stderr, "gaol: warning: %s\n", safeText(err.Error()))
	}
	ctx, interrupted, stop := interruptible(ctx)
	defer stop()
	out := a.output(f, &req)
	result, err := engine.Run(ctx, req)
	if flushErr := out.flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		if sig := interrupted(); sig != 0 {
			return exitError(exitSignal + int(sig))
		}
		return err
	}
	if err := a.printResult(f, result, kept); err != nil {
		return err
	}
	return exitOf(result, interrupted())
}

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

// policy is the operator's policy narrowed by the policy file and the flags.
func (f *runFlags) policy(cfg *config) (policy.Effective, error) {
	effective, err := cfg.policy(f.policyFile)
	if err != nil {
		return policy.Effective{}, err
	}
	doc, err := f.document()
	if err != nil {
		return policy.Effective{}, err
	}
	effective = effective.Narrow("flags", doc)
	return effective, effective.Policy.Validate()
}

// document is what the flags ask of the policy.
func (f *runFlags) document() (policy.Document, error) {
	var text strings.Builder
	set := func(key, value string, quote bool) {
		if value == "" {
			return
		}
		if quote {
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&text, "%s = %s\n", key, value)
	}
	text.WriteString("[limits]\n")
	set("memory", f.memory, true)
	set("cpus", f.cpus, false)
	set("timeout", f.timeout, true)
	if f.pids != 0 {
		set("pids", fmt.Sprint(f.pids), false)
	}
	if len(f.denyImports) > 0 {
		quoted := make([]string, len(f.denyImports))
		for i, module := range f.denyImports {
			quoted[i] = strconv.Quote(module)
		}
		fmt.Fprintf(&text, "[python]\ndeny_imports = [%s]\n", strings.Join(quoted, ", "))
	}
	return policy.ParseDocument("flags", []byte(text.String()))
}

// program puts the code or the command into the request.
func (a *app) program(req *runtime.Request, args []string, dash int) error {
	if len(args) == 0 {
		return &hinted{errors.New("nothing to run"), "name a Python file, - for standard input, or -- and a command"}
	}
	if dash == 0 {
		req.Command, req.Stdin = args, a.stdin
		return nil
	}
	code := &runtime.Code{Name: args[0], Args: args[1:]}
	var err error
	if code.Name == "-" {
		code.Name = "<stdin>"
		code.Source, err = readCode(a.stdin, "standard input")
	} else {
		req.Stdin = a.stdin
		code.Source, err = readCodeFile(code.Name)
	}
	if err != nil {
		return err
	}
	req.Code = code
	return nil
}

// maxCode bounds a program's source, in bytes.
const maxCode = 16 << 20

func readCodeFile(name string) ([]byte, error) {
	// Without O_NONBLOCK a FIFO of this name would hold us for ever.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &hinted{fmt.Errorf("read the code: %s is not a regular file", name), "use - to read code from standard input"}
	}
	return readCode(f, name)
}

func readCode(r io.Reader, name string) ([]byte, error) {
	source, err := io.ReadAll(io.LimitReader(r, maxCode+1))
	if err != nil {
		return nil, fmt.Errorf("read the code from %s: %w", name, err)
	}
	if len(source) > maxCode {
		return nil, fmt.Errorf("read the code from %s: more than %d MiB", name, maxCode>>20)
	}
	return source, nil
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

// environment gathers the variables of --env-file and -e, the latter last.
func (f *runFlags) environment() ([]string, error) {
	var env []string
	for _, name := range f.envFiles {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the environment file: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\r\n")
			if line != "" && !strings.HasPrefix(line, "#") {
				env = append(env, fromEnvironment(line))
			}
		}
	}
	for _, pair := range f.env {
		env = append(env, fromEnvironment(pair))
	}
	return env, nil
}

// fromEnvironment gives a bare name the value that gaol's own environment has.
func fromEnvironment(pair string) string {
	if strings.Contains(pair, "=") {
		return pair
	}
	return pair + "=" + os.Getenv(pair)
}

// openPaths opens the workspace and the mounts; kept is where a temporary
// workspace stays.
func (f *runFlags) openPaths(req *runtime.Request, cfg *config) (kept string, undo func(), err error) {
	var closers []io.Closer
	undo = func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	rules := cfg.rules(req.Policy)
	path := f.workspace
	switch {
	case path != "" && f.keep:
		return "", undo, &hinted{errors.New("--keep and --workspace exclude each other"), "a workspace of your own is always kept"}
	case f.keep:
		if path, err = cfg.keptWorkspace(); err != nil {
			return "", undo, err
		}
		// It lies among gaol's own directories, and was made just now.
		kept, rules = path, workspace.Rules{Roots: []string{path}}
	}
	if path != "" {
		if path, err = filepath.Abs(path); err != nil {
			return "", undo, fmt.Errorf("find the workspace: %w", err)
		}
		if req.Workspace, err = workspace.Open(path, rules); err != nil {
			return "", undo, err
		}
		closers = append(closers, req.Workspace)
	}
	for _, text := range f.mounts {
		m, err := openMount(text, cfg.rules(req.Policy))
		if err != nil {
			return "", undo, err
		}
		req.Mounts = append(req.Mounts, m)
		closers = append(closers, m.Source)
	}
	return kept, undo, nil
}

// keptWorkspace makes the directory of a workspace that stays.
func (c *config) keptWorkspace() (string, error) {
	parent := filepath.Join(c.Host.Data, "workspaces")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("make a workspace to keep: %w", err)
	}
	dir, err := os.MkdirTemp(parent, time.Now().UTC().Format("20060102-150405-"))
	if err != nil {
		return "", fmt.Errorf("make a workspace to keep: %w", err)
	}
	return dir, nil
}

// openMount reads SRC:DST:ro.
func openMount(text string, rules workspace.Rules) (runtime.Mount, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[2] != "ro" {
		return runtime.Mount{}, &hinted{fmt.Errorf("mount %q is not SRC:DST:ro", text), "mounts are read-only, and say so; what the program may write is the workspace"}
	}
	if err := runtime.CheckDestination(parts[1]); err != nil {
		return runtime.Mount{}, err
	}
	path, err := filepath.Abs(parts[0])
	if err != nil {
		return runtime.Mount{}, fmt.Errorf("find the mount source: %w", err)
	}
	source, err := workspace.OpenSource(path, rules)
	if err != nil {
		return runtime.Mount{}, err
	}
	return runtime.Mount{Source: source, Destination: parts[1]}, nil
}
