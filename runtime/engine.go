package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/cgroup"
)

// Errors that callers tell apart. Each comes wrapped with what it was about.
var (
	// ErrBadRequest: the request contradicts itself or its policy.
	ErrBadRequest = errors.New("invalid request")
	// ErrRunsc: the runsc binary is missing, or is not the one gaol was built for.
	ErrRunsc = errors.New("unusable runsc")
	// ErrLost: the sandbox ended without a word, and not by a limit of its own.
	ErrLost = errors.New("lost the sandbox")
	// ErrNotRoot: user 0 without root's rights; an ordinary user can do more.
	ErrNotRoot = errors.New("this user 0 is no root")
	// ErrNoUserns: this host forbids user namespaces to this user.
	ErrNoUserns = errors.New("no user namespaces")
)

// Config says where an engine keeps its state and what it runs. State and
// Runsc are required.
type Config struct {
	// State is the absolute directory of live sandboxes, on a local file
	// system. It is made when missing.
	State string
	// Runsc is the path of the runsc binary.
	Runsc string
	// IDs is the range of host ids for sandboxes; required as root.
	IDs IDRange
	// Cgroup says where to look for cgroups.
	Cgroup cgroup.Config
}

// Engine runs executions. Its methods may be called at once from many
// goroutines, and many engines and processes may share one State.
type Engine struct {
	cfg       Config
	root      bool
	hierarchy *cgroup.Hierarchy // nil: none
	means     hostMeans

	teardowns sync.WaitGroup
	mu        sync.Mutex
	errs      []error
}

// Open checks the configuration and the host, and makes the state directory.
// The caller closes the engine. ctx bounds only the opening.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	e := &Engine{cfg: cfg, root: os.Geteuid() == 0}
	if err := checkStatePath(cfg.State); err != nil {
		return nil, err
	}
	if e.root && (cfg.IDs.First < 1 || cfg.IDs.Last < cfg.IDs.First) {
		return nil, errors.New("as root, a range of unprivileged host ids for sandboxes is needed (host.ids)")
	}
	if !e.root {
		e.cfg.IDs = IDRange{}
	}
	if err := CheckRunsc(cfg.Runsc); err != nil {
		return nil, err
	}
	if err := e.makeState(); err != nil {
		return nil, err
	}
	if e.root {
		if err := checkPrivileges(); err != nil {
			return nil, err
		}
		if err := checkReachable(e.cfg.State); err != nil {
			return nil, err
		}
	}
	// The sandbox outlives the runsc command that makes it, and becomes ours.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a child subreaper: %w", err)
	}
	return e, e.findMeans(ctx)
}

// rootNeeds are the capabilities without which user 0 is no root: in somebody
// else's container, say.
var rootNeeds = map[string]uint{
	"CAP_CHOWN": unix.CAP_CHOWN, "CAP_KILL": unix.CAP_KILL, "CAP_SETGID": unix.CAP_SETGID,
	"CAP_SETUID": unix.CAP_SETUID, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN,
}

// checkPrivileges tells whether user 0 may do what root does here.
func checkPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(rootNeeds)) {
		if bit := rootNeeds[name]; sets[bit/32].Effective&(1<<(bit%32)) == 0 {
			return fmt.Errorf("%w: it lacks %s", ErrNotRoot, name)
		}
	}
	return nil
}

func (e *Engine) findMeans(ctx context.Context) error {
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		return fmt.Errorf("read the processors to run on: %w", err)
	}
	e.means.cpus = cpus.Count()
	h, err := cgroup.Find(ctx, e.cfg.Cgroup)
	var none *cgroup.Unavailable
	switch {
	case errors.As(err, &none):
		e.means.why, e.means.fix = none.Reason, none.Fix
		return nil
	case err != nil:
		return err
	}
	e.hierarchy = h
	e.means.cgroups = h.Controls()
	if len(e.means.cgroups) < 3 {
		e.means.why = "the cgroup controls only " + strings.Join(e.means.cgroups, ", ")
		e.means.fix = "enable the controllers cpu, memory and pids for the parent group (cgroup.subtree_control)"
	}
	return nil
}

// Close waits until every teardown is done, and reports those that failed.
func (e *Engine) Close() error {
	e.teardowns.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	err := errors.Join(e.errs...)
	e.errs = nil
	return err
}

// later runs a teardown off the way of the result, bounded, whatever becomes
// of the caller's context.
func (e *Engine) later(ctx context.Context, teardown func(context.Context) error) {
	e.teardowns.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*teardownLimit)
		defer cancel()
		if err := teardown(ctx); err != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.errs = append(e.errs, err)
		}
	})
}

// stages measures the way to a result.
type stages struct {
	began time.Time
	last  time.Time
	list  []Stage
}

func newStages() stages {
	now := time.Now()
	return stages{began: now, last: now}
}

func (s *stages) mark(name string) {
	now := time.Now()
	s.list = append(s.list, Stage{Name: name, Took: now.Sub(s.last)})
	s.last = now
}
