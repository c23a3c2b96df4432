package runtime

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/workspace"
)

// IDRange is a range of user ids, and of group ids of the same numbers, that
// nothing else on the host uses. As root each sandbox gets one of its own.
type IDRange struct{ First, Last uint32 }

func (r IDRange) count() uint32 { return r.Last - r.First + 1 }

// lease is one live sandbox's directory, held by a flock for as long as its
// owner lives: the lock, not a pid, is the sign of life.
type lease struct {
	id   string
	dir  string
	lock *os.File
	owner
}

// owner is the record that lets the next command clean up after a dead one. It
// is written before what it names comes into being.
type owner struct {
	Version int      `json:"version"`
	PID     int      `json:"pid"` // for people: the lock is what counts
	HostID  uint32   `json:"host_id"`
	Cgroups []string `json:"cgroups,omitempty"`
}

const ownerVersion = 1

func newID() string { return strings.ToLower(rand.Text()[:16]) }

func (l *lease) path(name string) string { return filepath.Join(l.dir, name) }

// newLease makes the directory of one sandbox beneath state.
func newLease(ctx context.Context, state string, ids IDRange) (*lease, error) {
	unlock, err := lockFile(filepath.Join(state, "lock"), unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer unlock()
	id := newID()
	l := &lease{id: id, dir: filepath.Join(state, "run", id)}
	l.owner = owner{Version: ownerVersion, PID: os.Getpid()}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the sandbox directory: %w", err)
	}
	if err := l.fill(state, ids); err != nil {
		return nil, errors.Join(err, l.release(context.WithoutCancel(ctx), state))
	}
	return l, nil
}

func (l *lease) fill(state string, ids IDRange) (err error) {
	if l.lock, err = os.OpenFile(l.path("lock"), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600); err != nil {
		return fmt.Errorf("make the sandbox lock: %w", err)
	}
	if err := flock(l.lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock the sandbox directory: %w", err)
	}
	if ids.First == 0 {
		return l.record()
	}
	if err := l.takeHostID(state, ids); err != nil {
		return err
	}
	// runsc, under the host id, comes through but cannot list or change.
	if err := os.Chown(l.dir, 0, int(l.HostID)); err != nil {
		return fmt.Errorf("hand the sandbox directory to its host id: %w", err)
	}
	return os.Chmod(l.dir, 0o710)
}

// takeHostID reserves a host id that no other live sandbox has.
func (l *lease) takeHostID(state string, ids IDRange) error {
	var start [4]byte
	if _, err := rand.Read(start[:]); err != nil {
		return fmt.Errorf("read random bytes: %w", err)
	}
	offset := uint32(start[0])<<24 | uint32(start[1])<<16 | uint32(start[2])<<8 | uint32(start[3])
	for i := range ids.count() {
		l.HostID = ids.First + (offset+i)%ids.count()
		if err := l.record(); err != nil {
			return err
		}
		err := os.Symlink(l.id, hostIDPath(state, l.HostID))
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			l.HostID = 0
			return fmt.Errorf("reserve a host id: %w", err)
		}
	}
	l.HostID = 0
	return fmt.Errorf("reserve a host id: all %d of the configured range are taken", ids.count())
}

// hostIDPath is a symbolic link from a host id to the sandbox that holds it: a
// link is made, with its content, in one step.
func hostIDPath(state string, id uint32) string {
	return filepath.Join(state, "ids", fmt.Sprint(id))
}

// record writes the owner's record so that no reader sees half of it.
func (l *lease) record() error {
	data, err := json.Marshal(l.owner)
	if err != nil {
		return fmt.Errorf("encode the owner record: %w", err)
	}
	next := l.path("owner.json.new")
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("write the owner record: %w", err)
	}
	if err := os.Rename(next, l.path("owner.json")); err != nil {
		return fmt.Errorf("publish the owner record: %w", err)
	}
	return nil
}

// group is the name of the sandbox's cgroup.
func (l *lease) group() string { return "gaol-" + l.id }

// abandon gives the lock up and leaves the rest to the next Reap.
func (l *lease) abandon() {
	if l.lock != nil {
		_ = l.lock.Close()
	}
}

// release removes all that the lease holds on disk. The processes and cgroups
// of the sandbox must be gone.
func (l *lease) release(ctx context.Context, state string) error {
	var errs []error
	if l.HostID != 0 {
		path := hostIDPath(state, l.HostID)
		if holder, err := os.Readlink(path); err == nil && holder == l.id {
			errs = append(errs, os.Remove(path))
		}
	}
	errs = append(errs, l.removeDir(ctx))
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}

// removeDir removes the directory whatever a program made of it: the managed
// workspace is in there.
func (l *lease) removeDir(ctx context.Context) error {
	parent, err := os.Open(filepath.Dir(l.dir))
	if err != nil {
		return fmt.Errorf("open the directory of sandboxes: %w", err)
	}
	defer parent.Close()
	if err := workspace.RemoveAll(ctx, parent, l.id); err != nil {
		return fmt.Errorf("remove the sandbox directory %s: %w", l.dir, err)
	}
	return nil
}

// lockPatience bounds the wait for a lock that others hold for milliseconds.
const lockPatience = 10 * time.Second

// lockFile takes an flock on a file that it makes when it is missing.
func lockFile(path string, how int) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock %s: %w", path, err)
	}
	const pause = 2 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		err := flock(f, how|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || waited > lockPatience {
			_ = f.Close()
			return nil, fmt.Errorf("take the lock %s, which another gaol holds: %w", path, err)
		}
		time.Sleep(pause)
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
