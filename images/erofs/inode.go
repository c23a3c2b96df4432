package erofs

// File types, the upper bits of [Inode.Mode]. The values are those of stat(2).
const (
	FIFO      = 0o010000
	Character = 0o020000
	Directory = 0o040000
	Block     = 0o060000
	Regular   = 0o100000
	Symlink   = 0o120000
	TypeMask  = 0o170000
)

// Inode is one file, directory, symbolic link or FIFO of the tree. The same
// *Inode in several places is one file with several names; a directory has one
// place only.
type Inode struct {
	// Entries are a directory's files by name. "." and ".." are implied.
	Entries map[string]*Inode
	// Target is what a symbolic link points to, 1 to [MaxTarget] bytes.
	Target string
	// Data is a regular file's content, as Append returned it.
	Data Extent
	// Mtime is in seconds since 1970, MtimeNsec below 1e9.
	Mtime     int64
	MtimeNsec uint32
	UID, GID  uint32
	// Mode holds the file type and the permission bits, as in stat(2).
	Mode uint16

	ino   uint32 // serial number from 1, 0 until numbered
	links uint32
	slot  int64 // place in the metadata area, in units of slotSize
}

// Extent is where a file's content lies in the image. The zero Extent is that
// of an empty file.
type Extent struct {
	block uint32
	// Size is in bytes.
	Size int64
}

// Type is the file type: Mode without the permission bits.
func (i *Inode) Type() uint16 { return i.Mode & TypeMask }

// IsDir reports whether i is a directory.
func (i *Inode) IsDir() bool { return i.Type() == Directory }

// direntType is the type as written in directory entries.
func (i *Inode) direntType() uint8 {
	switch i.Type() {
	case Regular:
		return 1
	case Directory:
		return 2
	case FIFO:
		return 5
	case Symlink:
		return 7
	}
	return 0
}
