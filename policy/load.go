package policy

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// LoadDocument reads a policy file that nobody but root and the caller could
// have written. A missing file is fs.ErrNotExist; a symbolic link, anything
// but a regular file, a foreign owner, write permission for group or others,
// or more than MaxFileBytes is ErrUnsafeFile. Otherwise it is ParseDocument.
func LoadDocument(path string) (Document, error) {
	data, err := ReadTrusted(path)
	if err != nil {
		return Document{}, err
	}
	return ParseDocument(path, data)
}

// ReadTrusted reads a file under the conditions of LoadDocument, for whoever
// decodes it with DecodeStrict.
func ReadTrusted(path string) ([]byte, error) {
	// O_NONBLOCK keeps a FIFO from blocking the open.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, unsafeFile(path, "a symbolic link; name the file itself")
	}
	if err != nil {
		return nil, fmt.Errorf("open policy file: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err := checkFile(fd, path); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read policy file: %w", err)
	}
	if len(data) > MaxFileBytes {
		return nil, unsafeFile(path, fmt.Sprintf("larger than %d bytes", MaxFileBytes))
	}
	return data, nil
}

// checkFile judges the open file, not its name, which could change meanwhile.
func checkFile(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat policy file %s: %w", path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return unsafeFile(path, "a directory")
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return unsafeFile(path, "not a regular file")
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return unsafeFile(path, fmt.Sprintf("owned by user %d, who is neither root nor you", st.Uid))
	case st.Mode&0o022 != 0:
		return unsafeFile(path, fmt.Sprintf("writable by others (mode %04o); run chmod go-w on it", st.Mode&0o7777))
	case st.Size > MaxFileBytes:
		return unsafeFile(path, fmt.Sprintf("larger than %d bytes", MaxFileBytes))
	}
	return nil
}

func unsafeFile(path, why string) error {
	return &Error{File: path, Err: fmt.Errorf("%w: %s", ErrUnsafeFile, why)}
}
