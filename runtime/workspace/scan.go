package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ScanLimits bound a scan. Zero fields take the default; what is beyond a limit
// is left out and the Listing says so.
type ScanLimits struct {
	Entries int // names in all; default 200,000
	Depth   int // levels below the workspace; default 256
	Bytes   int // length of all paths and link targets together; default 64 MiB
}

const (
	defaultEntries = 200_000
	defaultDepth   = 256
	defaultBytes   = 64 << 20
	maxNotes       = 16
	maxTarget      = 4096
)

func (l ScanLimits) withDefaults() ScanLimits {
	if l.Entries <= 0 {
		l.Entries = defaultEntries
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	return l
}

// Listing is what a workspace held at one moment: as exactly one moment as
// nothing wrote meanwhile.
type Listing struct {
	// Entries are sorted by the bytes of their path. The workspace directory
	// itself is not among them.
	Entries []Entry
	// Truncated: something is missing, beyond a limit, unreadable, or changed
	// during the scan.
	Truncated bool
	// Notes say what is missing and why, at most 16 of them.
	Notes []string

	topPartial bool
}

// Entry is one name in a workspace.
type Entry struct {
	Path    string // relative, bytes as they are on disk, perhaps not UTF-8
	Mode    uint32 // type and permissions as in st_mode
	Size    int64  // bytes
	Links   uint32 // number of hard links
	Mtime   int64  // nanoseconds since 1970
	Ctime   int64  // nanoseconds since 1970
	Target  string // of a symbolic link, never followed
	Partial bool   // a directory of which not everything is listed

	id identity
}

// Scan lists the workspace. It opens directories and nothing else, and looks at
// files without following links. Trouble inside the workspace is noted in the
// Listing; an error means that ctx ended or the workspace itself is unreadable.
// A workspace directory whose owner lost access, by a chmod inside, is given it
// back; no other file is altered.
func (d *Dir) Scan(ctx context.Context, limits ScanLimits) (Listing, error) {
	s := scan{limits: limits.withDefaults()}
	w := walk{visitor: &s, mask: unix.STATX_BASIC_STATS}
	if err := d.hold(func(fd int) error { return w.run(ctx, fd) }); err != nil {
		return Listing{}, fmt.Errorf("scan workspace: %w", err)
	}
	slices.SortFunc(s.list.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return s.list, nil
}

type scan struct {
	limits ScanLimits
	list   Listing
	bytes  int
}

var errLimit = errors.New("limit of the scan")

func (s *scan) entry(parent, dir int, name string, depth int, st *unix.Statx_t) (int, bool, error) {
	entry := newEntry(s.path(parent, name), st)
	if fileType(st) == unix.S_IFLNK {
		entry.Target = readLink(dir, name)
	}
	s.bytes += len(entry.Path) + len(entry.Target)
	if len(s.list.Entries) >= s.limits.Entries || s.bytes > s.limits.Bytes {
		return 0, false, fmt.Errorf("%w after %d entries: %w", errLimit, len(s.list.Entries), errStop)
	}
	s.list.Entries = append(s.list.Entries, entry)
	self := len(s.list.Entries)
	if isDir(st) && depth >= s.limits.Depth {
		s.incomplete(self, fmt.Errorf("%w at depth %d", errLimit, depth))
		return 0, false, nil
	}
	return self, true, nil
}

// path joins by hand: a name is one component and must stay as it is.
func (s *scan) path(parent int, name string) string {
	if parent == 0 {
		return name
	}
	return s.list.Entries[parent-1].Path + "/" + name
}

func (s *scan) incomplete(self int, why error) {
	s.list.Truncated = true
	where := "."
	if self == 0 {
		s.list.topPartial = true
	} else {
		s.list.Entries[self-1].Partial = true
		where = s.list.Entries[self-1].Path
	}
	if len(s.list.Notes) < maxNotes {
		s.list.Notes = append(s.list.Notes, fmt.Sprintf("list %s: %v", shorten(where), why))
	}
}

// shorten quotes a path for a message; a hostile one can be 64 KB long.
func shorten(path string) string {
	const most = 200
	if len(path) > most {
		return fmt.Sprintf("%q…", path[:most])
	}
	return fmt.Sprintf("%q", path)
}

func newEntry(path string, st *unix.Statx_t) Entry {
	return Entry{
		Path: path, Mode: uint32(st.Mode), Size: int64(st.Size), Links: st.Nlink,
		Mtime: nanoseconds(st.Mtime), Ctime: nanoseconds(st.Ctime), id: identityOf(st),
	}
}

func nanoseconds(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// readLink returns where a link points, or nothing if it has gone meanwhile.
func readLink(dir int, name string) string {
	var buf [maxTarget]byte
	n, err := unix.Readlinkat(dir, name, buf[:])
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
