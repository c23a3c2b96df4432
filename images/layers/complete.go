package layers

import (
	"gaol/images/erofs"
)

// complete turns the merged tree into a root file system for gaol.
func (m *merge) complete() (Info, error) {
	info := Info{Bytes: m.budget.content, Devices: dropDevices(m.tree.root)}
	for _, p := range mountPoints() {
		if err := m.tree.addMountPoint(p); err != nil {
			return info, err
		}
	}
	var err error
	if info.Passwd, err = m.ensureAccount(accountFile{
		name: "passwd", absent: "root:x:0:0:root:/root:/bin/sh\n", line: "gaol:x:1000:1000:gaol:/tmp:/bin/sh\n",
	}); err != nil {
		return info, err
	}
	if info.Group, err = m.ensureAccount(accountFile{
		name: "group", absent: "root:x:0:\n", line: "gaol:x:1000:\n",
	}); err != nil {
		return info, err
	}
	info.Entries = count(m.tree.root)
	return info, nil
}

// dropDevices removes device nodes and tells how many. They had their place
// until now so that they hide what lay below and hard links find them.
func dropDevices(dir *erofs.Inode) int {
	dropped := 0
	for name, inode := range dir.Entries {
		switch inode.Type() {
		case erofs.Character, erofs.Block:
			delete(dir.Entries, name)
			dropped++
		case erofs.Directory:
			dropped += dropDevices(inode)
		}
	}
	return dropped
}

// count is the number of names below dir.
func count(dir *erofs.Inode) int {
	n := len(dir.Entries)
	for _, inode := range dir.Entries {
		if inode.IsDir() {
			n += count(inode)
		}
	}
	return n
}

type mountPoint struct {
	path string
	mode uint16
}

// mountPoints are the directories that the sandbox mounts over, parents first.
func mountPoints() []mountPoint {
	return []mountPoint{
		{"workspace", 0o755}, {"proc", 0o555}, {"sys", 0o555}, {"dev", 0o755}, {"dev/pts", 0o755},
		{"dev/shm", 0o1777}, {"run", 0o755}, {"tmp", 0o1777},
	}
}

// addMountPoint makes the directory. A symbolic link in its place is replaced:
// gVisor would follow it and mount over whatever the image's author chose.
func (t *tree) addMountPoint(p mountPoint) error {
	parent, name := splitLast(p.path)
	w, err := t.walk(parent, false)
	if err != nil {
		return err
	}
	if at := w.dir().Entries[name]; at != nil && at.IsDir() {
		return nil
	}
	return t.put(&w, name, newDirectory(p.mode))
}
