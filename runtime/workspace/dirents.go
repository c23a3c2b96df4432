package workspace

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// dirent is one name in a directory and what the directory says it is: a DT_
// value, DT_UNKNOWN on file systems that do not tell.
type dirent struct {
	name string
	kind uint8
}

// entryReader reads a directory piece by piece, so that one of a million names
// takes no more memory than one of ten.
type entryReader struct{ buf [32 << 10]byte }

// next returns some more entries of the directory, and none at its end.
func (r *entryReader) next(fd int) ([]dirent, error) {
	for {
		n, err := unix.Getdents(fd, r.buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ENOENT: // it was removed while open
			return nil, nil
		case err != nil || n == 0:
			return nil, err
		}
		if entries := parseDirents(r.buf[:n]); len(entries) > 0 {
			return entries, nil
		}
	}
}

// parseDirents decodes struct linux_dirent64: inode 8, offset 8, record length
// 2, type 1, then the name up to a NUL.
func parseDirents(buf []byte) []dirent {
	const header = 19
	var entries []dirent
	for len(buf) >= header {
		size := int(binary.NativeEndian.Uint16(buf[16:]))
		if size < header || size > len(buf) {
			break
		}
		name := buf[header:size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if s := string(name); s != "" && s != "." && s != ".." {
			entries = append(entries, dirent{name: s, kind: buf[18]})
		}
		buf = buf[size:]
	}
	return entries
}
