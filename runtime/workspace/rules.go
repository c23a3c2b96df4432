package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Rules say which host directories may become a workspace or a mount source.
// All paths are absolute; symbolic links in them are resolved, since the
// operator wrote them. The zero value allows nothing.
type Rules struct {
	// Roots: only these directories and what is beneath them is allowed.
	Roots []string
	// Forbidden are gaol's own directories (state, store, configuration):
	// neither they, nor anything beneath, nor a parent of them is allowed.
	Forbidden []string
	// Exact directories are refused as such, while what is beneath them is
	// allowed: a user's home directory.
	Exact []string
}

// System directories, refused whatever the rules say.
var (
	systemExact = []string{"/", "/run", "/var", "/root", "/home", "/tmp"}
	systemTrees = []string{"/proc", "/sys", "/dev", "/boot", "/etc", "/usr",
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
)

// kernelFileSystems hold the kernel's own controls, wherever they are mounted.
var kernelFileSystems = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC,
	unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
	unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.DEVPTS_SUPER_MAGIC,
	unix.EFIVARFS_MAGIC, unix.SELINUX_MAGIC, unix.PSTOREFS_MAGIC,
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotAllowed, fmt.Sprintf(format, args...))
}

// beneath reports whether path is dir or inside it. Both are clean.
func beneath(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func checkSystem(path string) error {
	if slices.Contains(systemExact, path) {
		return refuse("%s is a system directory; name one inside it", path)
	}
	for _, tree := range systemTrees {
		if beneath(path, tree) {
			return refuse("%s belongs to the system", tree)
		}
	}
	return nil
}

// bounds are rules made ready for checks: links resolved, and each directory
// also known by device and inode, so that another name for it (a bind mount, a
// different case) is recognised.
type bounds struct {
	roots, forbidden, exact               []string
	forbiddenIDs, aboveForbidden, exactID map[identity]string
}

func newBounds(rules Rules) (*bounds, error) {
	b := &bounds{
		forbiddenIDs:   map[identity]string{},
		aboveForbidden: map[identity]string{},
		exactID:        map[identity]string{},
	}
	var err error
	if b.roots, err = realPaths(rules.Roots); err != nil {
		return nil, err
	}
	if b.forbidden, err = realPaths(rules.Forbidden); err != nil {
		return nil, err
	}
	for _, path := range rules.Forbidden {
		// Who may replace a link decides where it leads next.
		b.forbidden = append(b.forbidden, filepath.Clean(path))
	}
	if b.exact, err = realPaths(rules.Exact); err != nil {
		return nil, err
	}
	for _, dir := range b.forbidden {
		note(b.forbiddenIDs, dir, dir)
		for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
			note(b.aboveForbidden, parent, dir)
			if parent == "/" {
				break
			}
		}
	}
	for _, dir := range b.exact {
		note(b.exactID, dir, dir)
	}
	return b, nil
}

func note(ids map[identity]string, path, name string) {
	var st unix.Statx_t
	if statAt(unix.AT_FDCWD, path, unix.STATX_INO, &st) == nil {
		ids[identityOf(&st)] = name
	}
}

// realPaths resolves the operator's paths. The part that does not exist yet is
// kept as written.
func realPaths(paths []string) ([]string, error) {
	real := make([]string, 0, len(paths))
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%w: %q is not an absolute path", ErrBadRule, path)
		}
		resolved, err := realPath(filepath.Clean(path))
		if err != nil {
			return nil, fmt.Errorf("resolve rule %q: %w", path, err)
		}
		real = append(real, resolved)
	}
	return real, nil
}

func realPath(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return resolved, err
	}
	parent, err := realPath(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// checkPath judges a path that is known to hold no symbolic link.
func (b *bounds) checkPath(path string) error {
	for _, dir := range b.forbidden {
		if beneath(path, dir) || beneath(dir, path) {
			return refuse("%s is gaol's own", dir)
		}
	}
	if slices.Contains(b.exact, path) {
		return refuse("%s is a home directory; name one inside it", path)
	}
	if !slices.ContainsFunc(b.roots, func(root string) bool { return beneath(path, root) }) {
		if len(b.roots) == 0 {
			return refuse("no allowed root is set")
		}
		return refuse("it is outside the allowed roots %s", strings.Join(b.roots, ", "))
	}
	return nil
}

// checkStep judges one directory on the way, by what it is.
func (b *bounds) checkStep(id identity) error {
	if dir, ok := b.forbiddenIDs[id]; ok {
		return refuse("%s is gaol's own", dir)
	}
	return nil
}

// checkEnd judges what the path leads to, by what it is.
func (b *bounds) checkEnd(fd int, id identity) error {
	if dir, ok := b.aboveForbidden[id]; ok {
		return refuse("%s, which is gaol's own, is inside it", dir)
	}
	if dir, ok := b.exactID[id]; ok {
		return refuse("%s is a home directory; name one inside it", dir)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return fmt.Errorf("look at file system: %w", err)
	}
	if slices.Contains(kernelFileSystems, fs.Type) {
		return refuse("it is on a file system of the kernel")
	}
	return nil
}
