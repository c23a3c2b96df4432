package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gaol/runtime"
)

func newBenchCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure start latency",
		Args:  unknownVerb,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchStartCommand(a))
	return c
}

func newBenchStartCommand(a *app) *cobra.Command {
	var runs int
	var asJSON bool
	c := &cobra.Command{
		Use:   "start",
		Short: "Compare a cold gaol run with bare runsc run of the same bundle",
		Long: `Run print(1) by gaol, cold, as a whole process from start to end, and by bare
runsc run, in turn, and print the medians and their ratio. Both run the same
bundle, made from config.toml's image and policy: the same rootfs, guest, seccomp
profile, rlimits and mounts. The bare one has no cgroup, no watchdog, no host id
of its own, and nobody reads its result. As root it has no user namespace either,
which runsc refuses there, and so does less than gaol does.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.benchStart(c.Context(), runs, asJSON) },
	}
	c.Flags().IntVarP(&runs, "runs", "n", 20, "measured runs of each")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// benchSide is one of the two things compared.
type benchSide struct {
	Name  string    `json:"name"`
	MS    []float64 `json:"ms"`
	P50   float64   `json:"p50_ms"`
	start func() *exec.Cmd
}

func (a *app) benchStart(ctx context.Context, runs int, asJSON bool) error {
	if runs < 1 {
		return fmt.Errorf("--runs %d: at least 1 is needed", runs)
	}
	sides, undo, err := a.benchSides(ctx)
	if err != nil {
		return err
	}
	defer undo()
	fmt.Fprintf(a.stderr, "gaol: measuring %d runs of each…\n", runs)
	const warmUp = 2
	for i := range warmUp + runs {
		for _, side := range sides {
			took, err := timeCommand(side.start())
			if err != nil {
				return fmt.Errorf("%s: %w", side.Name, err)
			}
			if i >= warmUp {
				side.MS = append(side.MS, milliseconds(took))
			}
		}
	}
	for _, side := range sides {
		side.P50 = median(side.MS)
	}
	ratio := sides[0].P50 / sides[1].P50
	if asJSON {
		return encodeJSON(a.stdout, map[string]any{"runs": runs, "sides": sides, "ratio": ratio})
	}
	for _, side := range sides {
		fmt.Fprintf(a.stdout, "%-20s n=%d  p50 %7.1f ms  min %7.1f  max %7.1f\n", side.Name, len(side.MS), side.P50, slices.Min(side.MS), slices.Max(side.MS))
	}
	fmt.Fprintf(a.stdout, "ratio of medians     %.2f\n", ratio)
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// timeCommand runs a command that prints 1 and returns how long it took.
func timeCommand(cmd *exec.Cmd) (time.Duration, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	if stdout.String() != "1\n" {
		return 0, fmt.Errorf("printed %q", stdout.String())
	}
	return took, nil
}

// benchSides are `gaol run` and `runsc run`.
func (a *app) benchSides(ctx context.Context) (_ []*benchSide, undo func(), err error) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil, nil, err
	}
	effective, err := cfg.policy(nil)
	if err != nil {
		return nil, nil, err
	}
	rootfs, err := (&runFlags{}).resolve(ctx, cfg, effective.Policy)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "gaol-bench-")
	if err != nil {
		_ = rootfs.Close()
		return nil, nil, fmt.Errorf("make the bench directory: %w", err)
	}
	undo = func() {
		_ = rootfs.Close()
		// As root, runsc leaves an empty network namespace mounted in its root.
		_ = unix.Unmount(filepath.Join(dir, "state", "null-netns"), unix.MNT_DETACH)
		_ = os.RemoveAll(dir)
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	const source = "print(1)\n"
	script := filepath.Join(dir, "one.py")
	if err := os.WriteFile(script, []byte(source), 0o600); err != nil {
		return nil, nil, fmt.Errorf("write the script: %w", err)
	}
	bundle, state, workspace := filepath.Join(dir, "bundle"), filepath.Join(dir, "state"), filepath.Join(dir, "ws")
	if err := os.Mkdir(workspace, 0o777); err != nil {
		return nil, nil, fmt.Errorf("make the bare workspace: %w", err)
	}
	req := runtime.Request{
		Policy: effective.Policy, Rootfs: rootfsOf(rootfs),
		Code: &runtime.Code{Name: "one.py", Source: []byte(source)},
	}
	flags, stdin, err := runtime.BareBundle(bundle, workspace, req)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find gaol's own path: %w", err)
	}
	run := []string{"run", "--quiet", script}
	if a.configFile != "" {
		run = append([]string{"--config", a.configFile}, run...)
	}
	n := 0
	return []*benchSide{
		{Name: "gaol run, cold", start: func() *exec.Cmd { return exec.CommandContext(ctx, self, run...) }},
		{Name: "bare runsc run", start: func() *exec.Cmd {
			n++
			args := append([]string{"--root=" + state}, flags...)
			args = append(args, "run", "--bundle="+bundle, fmt.Sprintf("bare-%d", n))
			cmd := exec.CommandContext(ctx, cfg.Runsc, args...)
			cmd.Stdin = bytes.NewReader(stdin)
			return cmd
		}},
	}, undo, nil
}
