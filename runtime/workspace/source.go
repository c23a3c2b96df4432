package workspace

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Source is a host file or directory that a sandbox gets to read. Close it
// when the sandbox holds its own mount.
type Source struct {
	file     *os.File
	path     string
	id       identity
	dir      bool
	uid, gid uint32
	rules    Rules
}

// OpenSource opens the regular file or directory at path as the source of a
// read-only mount. Rules and errors are those of Open; anything but a regular
// file or a directory is ErrNotRegular.
func OpenSource(path string, rules Rules) (*Source, error) {
	found, err := locate(path, rules)
	if err != nil {
		return nil, fmt.Errorf("open source %q: %w", path, err)
	}
	if kind := fileType(&found.stat); kind != unix.S_IFREG && kind != unix.S_IFDIR {
		unix.Close(found.fd)
		return nil, fmt.Errorf("open source %q: %w or directory", path, ErrNotRegular)
	}
	return &Source{
		file: os.NewFile(uintptr(found.fd), found.path), path: found.path,
		id: identityOf(&found.stat), dir: isDir(&found.stat), uid: found.stat.Uid, gid: found.stat.Gid, rules: rules,
	}, nil
}

// File returns the source's descriptor, opened with O_PATH: it can be mounted
// and looked at, not read. It belongs to the Source: do not close it.
func (s *Source) File() *os.File { return s.file }

// Path returns the absolute path that was opened, without symbolic links.
func (s *Source) Path() string { return s.path }

// IsDir reports whether the source is a directory.
func (s *Source) IsDir() bool { return s.dir }

// Owner returns the ids that owned the source when it was opened.
func (s *Source) Owner() (uid, gid uint32) { return s.uid, s.gid }

// Recheck reports whether the path still names the opened source: nil if it
// does, ErrReplaced if another one took its place, or what OpenSource would say.
// Call it after mounting by path.
func (s *Source) Recheck() error { return recheck(s.path, s.rules, s.id) }

// Close closes the source.
func (s *Source) Close() error { return s.file.Close() }
