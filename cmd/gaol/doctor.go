package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/cgroup"
)

func newDoctorCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this host can enforce, and how to fix what it cannot",
		Long: `Look at what gaol needs of this host: kernel, user namespaces, cgroups, runsc,
images, disk space. Each line that is not ok has the exact fix. Nothing is
changed. The exit code is 1 when an execution could not run.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.doctor(c.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	checks := a.diagnose(ctx)
	failed := false
	for _, c := range checks {
		failed = failed || c.Status == runtime.CheckFail
	}
	if asJSON {
		err := encodeJSON(a.stdout, map[string]any{"version": version, "ok": !failed, "checks": checks})
		if err != nil {
			return err
		}
	} else {
		for _, c := range checks {
			fmt.Fprintf(a.stdout, "%-4s  %-15s  %s\n", c.Status, c.Name, safeText(c.Detail))
			if c.Fix != "" {
				fmt.Fprintf(a.stdout, "      %-15s  fix: %s\n", "", safeText(c.Fix))
			}
		}
	}
	if failed {
		return exitError(1)
	}
	return nil
}

func (a *app) diagnose(ctx context.Context) []runtime.Check {
	cfg, err := a.loadConfig()
	if err != nil {
		return []runtime.Check{{Name: "configuration", Status: runtime.CheckFail, Detail: err.Error(), Fix: "correct the file"}}
	}
	where := cfg.file
	if where == "" {
		where = "none; built-in defaults"
	}
	checks := []runtime.Check{{Name: "configuration", Status: runtime.CheckOK, Detail: where}}
	effective, err := cfg.policy(nil)
	if err != nil {
		checks[0] = runtime.Check{Name: "configuration", Status: runtime.CheckFail, Detail: err.Error(), Fix: "correct the file"}
		effective = policy.Builtin()
	}
	checks = append(checks, runtime.Diagnose(ctx, runtime.Config{
		State: cfg.Host.State, Runsc: cfg.Runsc,
		Cgroup: cgroup.Config{Parent: cfg.Host.CgroupParent, SessionBus: sessionBus()},
	}, effective.Policy)...)
	checks = append(checks, checkImage(ctx, cfg))
	return append(checks, checkDisk("data disk", cfg.Host.Data), checkDisk("state disk", cfg.Host.State))
}

func checkImage(ctx context.Context, cfg *config) runtime.Check {
	const name = "image"
	store, err := cfg.store()
	if err != nil {
		return runtime.Check{Name: name, Status: runtime.CheckFail, Detail: err.Error(), Fix: "correct host.data in config.toml"}
	}
	defer store.Close()
	rootfs, err := store.Resolve(ctx, cfg.Image)
	if err != nil {
		return runtime.Check{Name: name, Status: runtime.CheckFail, Detail: err.Error(), Fix: "gaol images build " + cfg.Image}
	}
	defer rootfs.Close()
	return runtime.Check{Name: name, Status: runtime.CheckOK, Detail: fmt.Sprintf("%s %s, %s", cfg.Image, rootfs.Digest, bytesText(rootfs.Size))}
}

// lowDisk is where a full disk is near: the space that an image build takes.
const lowDisk = 2 << 30

// checkDisk looks at the file system on which dir is, or will be made.
func checkDisk(name, dir string) runtime.Check {
	for {
		if _, err := os.Stat(dir); err == nil || dir == "/" {
			break
		}
		dir = filepath.Dir(dir)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return runtime.Check{Name: name, Status: runtime.CheckFail, Detail: fmt.Sprintf("%s: %v", dir, err), Fix: "make the directory readable"}
	}
	free := int64(st.Bavail) * st.Bsize //nolint:gosec // no disk has 2^63 blocks
	c := runtime.Check{Name: name, Status: runtime.CheckOK, Detail: fmt.Sprintf("%s free at %s", bytesText(free), dir)}
	if free < lowDisk {
		c.Status, c.Fix = runtime.CheckWarn, "free some space, or set host.data and host.state in config.toml"
	}
	if unix.Access(dir, unix.W_OK) != nil {
		c.Status, c.Detail, c.Fix = runtime.CheckFail, dir+" is not writable", "make it yours, or set host.data and host.state in config.toml"
	}
	return c
}
