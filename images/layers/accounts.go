package layers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gaol/images/erofs"
)

// maxAccountFile bounds /etc/passwd and /etc/group, in bytes.
const maxAccountFile = 1 << 20

// accountFile is /etc/passwd or /etc/group: what an image without one gets, and
// the line that names id 1000.
type accountFile struct{ name, absent, line string }

// ensureAccount gives id 1000 a name, since programs ask for one (Python's pwd
// module, shells), and returns the file's content. The image's own file keeps
// its owner, mode and time. An image with something else in the file's place is
// left alone.
func (m *merge) ensureAccount(f accountFile) ([]byte, error) {
	etc, err := m.tree.walk("etc", true)
	if errors.Is(err, ErrEntry) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at, name, old := m.tree.follow(etc, f.name)
	content := []byte(f.absent)
	inode := &erofs.Inode{Mode: erofs.Regular | 0o644}
	if old != nil {
		if old.Type() != erofs.Regular {
			return nil, nil
		}
		if content, err = m.read(old, f.name); err != nil {
			return nil, err
		}
		if names(content, "1000") {
			return content, nil
		}
		*inode = *old
	}
	if len(content) > 0 && content[len(content)-1] != '\n' {
		content = append(content, '\n')
	}
	content = append(content, f.line...)
	if inode.Data, err = m.image.Append(bytes.NewReader(content)); err != nil {
		return nil, err
	}
	return content, m.tree.put(&at, name, inode)
}

// follow finds the file that name in dir means. If there is none, also at the
// end of symbolic links, it returns nil and the place that was asked for.
func (t *tree) follow(dir trail, name string) (trail, string, *erofs.Inode) {
	at, last := dir, name
	for range maxLinks {
		inode := at.dir().Entries[last]
		if inode == nil {
			break
		}
		if inode.Type() != erofs.Symlink {
			return at, last, inode
		}
		target := inode.Target
		if target[0] != '/' {
			target = at.path() + "/" + target
		}
		var parent string
		parent, last = splitLast(target)
		next, err := t.walk(parent, false)
		if err != nil {
			break
		}
		at = next
	}
	return dir, name, nil
}

func (m *merge) read(i *erofs.Inode, name string) ([]byte, error) {
	if i.Data.Size > maxAccountFile {
		return nil, fmt.Errorf("/etc/%s: %w", name, exceeded("bytes", maxAccountFile))
	}
	r, err := m.image.Content(i.Data)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read /etc/%s back: %w", name, err)
	}
	return content, nil
}

// names reports whether a line has the id in its third field.
func names(content []byte, id string) bool {
	for line := range bytes.Lines(content) {
		if fields := strings.Split(strings.TrimSpace(string(line)), ":"); len(fields) > 2 && fields[2] == id {
			return true
		}
	}
	return false
}

func splitLast(path string) (parent, name string) {
	n := strings.LastIndexByte(path, '/')
	return path[:n+1], path[n+1:]
}
