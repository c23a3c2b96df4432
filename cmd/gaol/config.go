package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gaol/images"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/cgroup"
	"gaol/runtime/workspace"
)

// config is config.toml: where things are on this host, and the operator's
// policy.
type config struct {
	policy.Document
	Image string     `toml:"image"`
	Runsc string     `toml:"runsc"`
	Host  hostConfig `toml:"host"`

	file  string   // where it was read from, "" for nowhere
	files []string // where this and the next gaol look for it
}

type hostConfig struct {
	CgroupParent string `toml:"cgroup_parent"`
	IDs          string `toml:"ids"`
	Data         string `toml:"data"`
	State        string `toml:"state"`
}

// defaultConfig is the configuration of a host without a config.toml. The ids
// lie just above those that systemd gives to containers.
func defaultConfig() *config {
	return &config{Image: "python", Host: hostConfig{IDs: "1879048192-1879113727"}}
}

// systemData holds the images that root made, for all users.
const systemData = "/var/lib/gaol"

// loadConfig reads the first config.toml there is.
func (a *app) loadConfig() (*config, error) {
	if a.configFile == "" && a.configGiven() {
		return nil, errors.New("--config: it is empty")
	}
	c := defaultConfig()
	paths := standardConfigPaths()
	c.files = paths
	if a.configFile != "" {
		paths = []string{a.configFile}
	}
	for _, path := range paths {
		data, err := policy.ReadTrusted(path)
		if errors.Is(err, fs.ErrNotExist) && a.configFile == "" {
			continue
		}
		if err != nil {
			return nil, configError(err)
		}
		c.file = path
		if err := policy.DecodeStrict(path, data, c); err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		break
	}
	if err := c.fill(); err != nil {
		return nil, err
	}
	a.own = []string{c.Host.Data, c.Host.State}
	return c, nil
}

// configError is an error of reading the configuration, which package policy,
// that reads it, calls a policy file.
func configError(err error) error {
	var (
		path   *fs.PathError
		unsafe *policy.Error
	)
	switch {
	case errors.As(err, &path):
		err = path
	case errors.Is(err, policy.ErrUnsafeFile) && errors.As(err, &unsafe):
		why := strings.TrimPrefix(unsafe.Err.Error(), policy.ErrUnsafeFile.Error()+": ")
		err = &hinted{fmt.Errorf("%s: not safe: %s", unsafe.File, why), hintUnsafeFile}
	}
	return fmt.Errorf("read the configuration: %w", err)
}

func standardConfigPaths() []string {
	var paths []string
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(dir, "gaol", "config.toml"))
	}
	return append(paths, "/etc/gaol/config.toml")
}

// fill sets what the file leaves to gaol.
func (c *config) fill() error {
	if c.Runsc == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find gaol's own path: %w", err)
		}
		if self, err = filepath.EvalSymlinks(self); err != nil {
			return fmt.Errorf("find gaol's own path: %w", err)
		}
		c.Runsc = filepath.Join(filepath.Dir(self), "runsc")
	}
	if !filepath.IsAbs(c.Runsc) {
		return fmt.Errorf("configuration: runsc = %q is not an absolute path", c.Runsc)
	}
	for _, dir := range []struct {
		value          *string
		key            string
		variable, home string
		system         string
	}{
		{&c.Host.Data, "host.data", "XDG_DATA_HOME", ".local/share", systemData},
		{&c.Host.State, "host.state", "XDG_STATE_HOME", ".local/state", systemData + "/state"},
	} {
		switch {
		case *dir.value != "":
		case os.Geteuid() == 0:
			*dir.value = dir.system
		default:
			base, err := xdg(dir.variable, dir.home)
			if err != nil {
				return err
			}
			*dir.value = filepath.Join(base, "gaol")
		}
		if !filepath.IsAbs(*dir.value) {
			return fmt.Errorf("configuration: %s = %q is not an absolute path", dir.key, *dir.value)
		}
	}
	return nil
}

// xdg is a directory of the XDG base directory specification, which says to
// ignore a relative one.
func xdg(variable, home string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", &hinted{fmt.Errorf("find the home directory: %w", err), "set HOME, or host.data and host.state in a file named by --config"}
	}
	return filepath.Join(dir, home), nil
}

// policy is the operator's policy, narrowed by each of the policy files in turn.
func (c *config) policy(files []string) (policy.Effective, error) {
	effective := policy.Builtin()
	if c.file != "" {
		effective = effective.Operator(c.file, c.Document)
	}
	for _, file := range files {
		if file == "" {
			return policy.Effective{}, errors.New("--policy: it is empty")
		}
		doc, err := policy.LoadDocument(file)
		if err != nil {
			return policy.Effective{}, err
		}
		effective = effective.Narrow(file, doc)
	}
	return effective, effective.Policy.Validate()
}

// store opens the user's images and, read-only, the system's.
func (c *config) store() (*images.Store, error) {
	return images.Open(images.Config{
		Root: filepath.Join(c.Host.Data, "images"), System: filepath.Join(systemData, "images"),
	})
}

// engine opens the runtime. The caller closes it.
func (c *config) engine(ctx context.Context) (*runtime.Engine, error) {
	ids, err := parseIDs(c.Host.IDs)
	if err != nil {
		return nil, err
	}
	return runtime.Open(ctx, runtime.Config{
		State: c.Host.State, Runsc: c.Runsc, IDs: ids,
		Cgroup: cgroup.Config{Parent: c.Host.CgroupParent, SessionBus: sessionBus()},
	})
}

func sessionBus() string {
	if os.Geteuid() == 0 {
		return ""
	}
	if bus := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); bus != "" {
		return bus
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return "unix:path=" + dir + "/bus"
	}
	return ""
}

func parseIDs(text string) (runtime.IDRange, error) {
	first, last, ok := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(first, 10, 31)
	b, errB := strconv.ParseUint(last, 10, 31)
	if !ok || errA != nil || errB != nil || a < 1000 || b < a {
		return runtime.IDRange{}, fmt.Errorf("configuration: host.ids = %q is not FIRST-LAST, two ids of 1000 and more that nothing else uses", text)
	}
	return runtime.IDRange{First: uint32(a), Last: uint32(b)}, nil
}

// rules say where workspaces and mounts may come from. A workspace around a
// program or a file that the next gaol trusts, even one that is not there yet,
// would let the code write it.
func (c *config) rules(p policy.Policy) (workspace.Rules, error) {
	self, err := os.Executable()
	if err != nil {
		return workspace.Rules{}, fmt.Errorf("find gaol's own path: %w", err)
	}
	rules := workspace.Rules{
		Roots:     p.Files.Roots,
		Forbidden: append([]string{c.Host.Data, c.Host.State, systemData, c.Runsc, self}, c.files...),
	}
	if c.file != "" {
		file, err := filepath.Abs(c.file)
		if err != nil {
			return workspace.Rules{}, fmt.Errorf("find the configuration: %w", err)
		}
		rules.Forbidden = append(rules.Forbidden, file)
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		rules.Exact = append(rules.Exact, home)
	}
	return rules, nil
}
