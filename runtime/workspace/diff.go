package workspace

import (
	"sort"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Kind is what happened to an entry.
type Kind string

// The kinds of change. A rename is a deletion and a creation; so is a name that
// became another type, for instance a file that is now a directory.
const (
	Created  Kind = "created"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
)

// Change is one difference between two listings.
type Change struct {
	// Path is relative to the workspace and valid UTF-8.
	Path string
	// Raw is the path's true bytes, only when they are not valid UTF-8.
	Raw  []byte
	Kind Kind
	// Type is one of file, dir, symlink, fifo, socket, device.
	Type string
	// Mode is the type and permissions as in st_mode.
	Mode uint32
	// Size is in bytes; that of a deleted entry is its last one.
	Size int64
	// Target is where a symbolic link points, as valid UTF-8.
	Target string
	// MIME is guessed from the name alone; empty when unknown.
	MIME string
	// Risky: common tools of a host would execute this, or be configured by it,
	// or it is a link that leads out of the workspace.
	Risky bool
}

// name is the path as it is on disk.
func (c Change) name() string {
	if c.Raw != nil {
		return string(c.Raw)
	}
	return c.Path
}

// Diff says what changed from before to after, sorted by path. Content is not
// read: a file counts as modified when its inode, size, permissions, mtime or
// ctime differ. Directories appear when created or deleted. Compiled Python
// modules in __pycache__ are left out, and the directory with them; anything
// else in a directory of that name is reported, and a module with a set-id bit.
// What one of the listings does not know, being truncated, is left out.
func Diff(before, after Listing) []Change {
	var changes []Change
	for _, change := range diffAll(before, after) {
		if !isPythonCache(change) {
			changes = append(changes, change)
		}
	}
	return changes
}

// diffAll is Diff with nothing left out.
func diffAll(before, after Listing) []Change {
	var changes []Change
	old, now := before.Entries, after.Entries
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].Path < now[0].Path:
			if after.knows(old[0].Path) {
				changes = append(changes, newChange(Deleted, &old[0]))
			}
			old = old[1:]
		case len(old) == 0 || now[0].Path < old[0].Path:
			if before.knows(now[0].Path) {
				changes = append(changes, newChange(Created, &now[0]))
			}
			now = now[1:]
		default:
			changes = append(changes, compare(&old[0], &now[0])...)
			old, now = old[1:], now[1:]
		}
	}
	return changes
}

func compare(old, now *Entry) []Change {
	switch {
	case typeName(old.Mode) != typeName(now.Mode):
		return []Change{newChange(Deleted, old), newChange(Created, now)}
	case typeName(now.Mode) == "dir":
		return nil
	case old.id != now.id || old.Size != now.Size || old.Mode != now.Mode ||
		old.Mtime != now.Mtime || old.Ctime != now.Ctime || old.Target != now.Target:
		return []Change{newChange(Modified, now)}
	}
	return nil
}

// knows reports whether the listing can say that path does not exist: it can,
// unless a directory above was not listed to its end.
func (l *Listing) knows(path string) bool {
	if !l.Truncated {
		return true
	}
	for {
		slash := strings.LastIndexByte(path, '/')
		if slash < 0 {
			return !l.topPartial
		}
		path = path[:slash]
		if i, ok := l.find(path); ok {
			return !l.Entries[i].Partial
		}
	}
}

func (l *Listing) find(path string) (int, bool) {
	return sort.Find(len(l.Entries), func(i int) int { return strings.Compare(path, l.Entries[i].Path) })
}

func newChange(kind Kind, entry *Entry) Change {
	change := Change{
		Path: entry.Path, Kind: kind, Type: typeName(entry.Mode), Mode: entry.Mode,
		Size: entry.Size, Target: strings.ToValidUTF8(entry.Target, "\uFFFD"),
	}
	if !utf8.ValidString(entry.Path) {
		change.Raw = []byte(entry.Path)
		change.Path = strings.ToValidUTF8(entry.Path, "\uFFFD")
	}
	if change.Type == "file" {
		change.MIME = mimeType(entry.Path)
	}
	change.Risky = kind != Deleted && (isRisky(entry.Path) || leadsOut(entry.Path, entry.Target))
	return change
}

func typeName(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "file"
	case unix.S_IFDIR:
		return "dir"
	case unix.S_IFLNK:
		return "symlink"
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

const pythonCache = "__pycache__"

func isPythonCache(change Change) bool {
	path := change.name()
	if change.Type == "dir" {
		return path == pythonCache || strings.HasSuffix(path, "/"+pythonCache)
	}
	dir, name := "", path
	if slash := strings.LastIndexByte(path, '/'); slash >= 0 {
		dir, name = path[:slash], path[slash+1:]
	}
	inside := dir == pythonCache || strings.HasSuffix(dir, "/"+pythonCache)
	// While it is written, a module's file has a number too: name.pyc.140235.
	return change.Type == "file" && change.Mode&setID == 0 && inside && strings.Contains(name, ".pyc")
}
