package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/mount"
	"golang.org/x/sys/unix"
)

// privateMount is one bind that a sandbox sees under its lease's directory when
// gaol runs as root: there the host id of the sandbox reaches it, wherever the
// source lies, and the mount vanishes with the last process that sees it.
type privateMount struct {
	source *os.File // O_PATH or better
	target string
	attrs  uint64 // MOUNT_ATTR_*
	// owner, when it is set, is shown as the sandbox's host id, so that files
	// of the one belong to the other without any chown.
	owner  *ids
	hostID uint32
}

type ids struct{ uid, gid uint32 }

// ErrIDMap says that a file system cannot show files under other ids, which as
// root the workspace and mounts must.
var ErrIDMap = errors.New("this file system cannot do idmapped mounts")

// enterPrivateMounts gives the calling OS thread a mount namespace of its own
// with the mounts in it. The thread must be locked and must die afterwards.
func enterPrivateMounts(mounts []privateMount) error {
	// The sources are mounts of the namespace that the thread leaves, where
	// alone they can be cloned.
	trees := make([]int, 0, len(mounts))
	defer func() {
		for _, tree := range trees {
			unix.Close(tree)
		}
	}()
	for _, m := range mounts {
		tree, err := m.clone()
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts of the namespace private: %w", err)
	}
	for i, m := range mounts {
		if err := unix.MoveMount(trees[i], "", unix.AT_FDCWD, m.target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.source.Name(), m.target, err)
		}
	}
	return nil
}

// clone makes the mount, attached to nothing yet. The caller closes it.
func (m privateMount) clone() (int, error) {
	tree, err := unix.OpenTree(int(m.source.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, fmt.Errorf("clone the mount of %s: %w", m.source.Name(), err)
	}
	if err := m.setAttributes(tree); err != nil {
		unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

func (m privateMount) setAttributes(tree int) error {
	attr := unix.MountAttr{Attr_set: m.attrs, Propagation: unix.MS_PRIVATE}
	if m.owner != nil {
		ns, err := mount.GetUsernsFD(
			fmt.Sprintf("%d:%d:1", m.owner.uid, m.hostID), fmt.Sprintf("%d:%d:1", m.owner.gid, m.hostID))
		if err != nil {
			return fmt.Errorf("make the id mapping for %s: %w", m.source.Name(), explainNoUserns(err))
		}
		defer ns.Close()
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(ns.Fd())
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		if m.owner != nil && errors.Is(err, unix.EINVAL) {
			err = ErrIDMap
		}
		return fmt.Errorf("set the attributes of the mount of %s: %w", m.source.Name(), err)
	}
	return nil
}

// makeMountPoint makes an empty file or directory for a mount to cover.
func makeMountPoint(target string, directory bool) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o711); err != nil {
		return fmt.Errorf("make the mount point %s: %w", target, err)
	}
	if directory {
		return os.Mkdir(target, 0o711)
	}
	return os.WriteFile(target, nil, 0o600)
}
