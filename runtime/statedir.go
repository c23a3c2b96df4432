package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxStatePath leaves room for "/run/", an id, "/r/runsc-s.sock" and a NUL in
// the 108 bytes of a Unix socket's address. gVisor would put a socket whose path
// is too long into /tmp.
const maxStatePath = 108 - len("/run/") - 16 - len("/r/runsc-s.sock") - 1

// makeState makes the state directory where it is missing, and finds the one
// path by which every process of gaol knows it. What was there already keeps its
// mode, and must be ours.
func (e *Engine) makeState() error {
	mode := os.FileMode(0o700)
	if e.root {
		mode = 0o711 // the sandboxes' host ids come through
	}
	if err := os.MkdirAll(filepath.Dir(e.cfg.State), mode); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if err := makeOwnDir(e.cfg.State, mode); err != nil {
		return err
	}
	resolved, err := filepath.EvalSymlinks(e.cfg.State)
	if err != nil {
		return fmt.Errorf("find the state directory: %w", err)
	}
	e.cfg.State = resolved
	for _, name := range []string{"run", "ids"} {
		if err := makeOwnDir(filepath.Join(resolved, name), mode); err != nil {
			return err
		}
	}
	return checkStatePath(resolved)
}

func makeOwnDir(dir string, mode os.FileMode) error {
	err := os.Mkdir(dir, mode)
	if err == nil {
		err = os.Chmod(dir, mode) // whatever the umask
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the state directory: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("look at the state directory %s: %w", dir, err)
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("the state directory %s must be yours and writable by nobody else; set host.state in config.toml", dir)
	}
	return nil
}

func checkStatePath(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("open the state directory %q: not an absolute path; set host.state in config.toml", dir)
	}
	if len(dir) > maxStatePath {
		return fmt.Errorf("open the state directory %s: its path is longer than %d bytes, which leaves no room for the sandbox's socket; set host.state in config.toml", dir, maxStatePath)
	}
	return nil
}

// checkReachable tells whether the host ids of sandboxes can come to dir.
func checkReachable(dir string) error {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("look at the state directory: %w", err)
		}
		if info.Mode()&0o001 == 0 {
			return fmt.Errorf("the state directory must be reachable for the unprivileged ids that sandboxes run as: %s is not; chmod o+x it, or set host.state in config.toml", dir)
		}
	}
	return nil
}
