package workspace

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

const ownerAccess = 0o700

// openDir opens the directory name in dir for reading, without following a link
// or crossing a mount. With unlock, a directory whose owner took its own access
// away is given it back first: by descriptor, so that it can be no other file.
func openDir(dir int, name string, unlock bool) (int, error) {
	fd, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0, unix.RESOLVE_NO_XDEV)
	if !unlock || err != nil && !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	if err == nil {
		if err := unlockDir(fd); err != nil {
			unix.Close(fd)
			return -1, err
		}
		return fd, nil
	}
	at, err := openAt(dir, name, unix.O_PATH|unix.O_DIRECTORY, 0, unix.RESOLVE_NO_XDEV)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	if err := unlockDir(at); err != nil {
		return -1, err
	}
	return openAt(at, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0, 0)
}

// open opens a directory of a walk. With unlock, one that the owner may not look
// into is opened up while the walk is in it; mode is then what leave puts back,
// and -1 where nothing was changed.
func (w *walk) open(dir int, name string) (fd, mode int, err error) {
	fd, err = openDir(dir, name, false)
	if !w.unlock || err != nil && !errors.Is(err, unix.EACCES) {
		return fd, -1, err
	}
	if err == nil && unix.Faccessat(fd, ".", unix.F_OK, 0) == nil {
		return fd, -1, nil
	}
	if err == nil {
		unix.Close(fd)
	}
	var st unix.Statx_t
	if err := statAt(dir, name, unix.STATX_TYPE|unix.STATX_MODE, &st); err != nil {
		return -1, -1, err
	}
	fd, err = openDir(dir, name, true)
	return fd, int(st.Mode & 0o7777), err
}

// leave closes a directory that open opened.
func leave(fd, mode int) {
	if mode >= 0 {
		_ = chmodFD(fd, uint32(mode))
	}
	unix.Close(fd)
}

// reopenTop opens a workspace directory once more, for an offset of its own. The
// program inside owns the directory and may have taken all access away; then it
// is given back, since nothing beneath could even be looked at.
func reopenTop(fd int) (int, error) {
	top, err := openAt(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0, 0)
	if !errors.Is(err, unix.EACCES) {
		return top, translate(err)
	}
	if err := unlockDir(fd); err != nil {
		return -1, err
	}
	top, err = openAt(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0, 0)
	return top, translate(err)
}

// unlockDir adds read, write and search for the owner where they are missing.
// An error is that of looking; whether the change was possible shows at use.
func unlockDir(fd int) error {
	var st unix.Statx_t
	if err := statAt(fd, "", unix.STATX_TYPE|unix.STATX_MODE, &st); err != nil {
		return err
	}
	if !isDir(&st) {
		return unix.ENOTDIR
	}
	if st.Mode&ownerAccess != ownerAccess {
		_ = chmodFD(fd, uint32(st.Mode&0o7777)|ownerAccess)
	}
	return nil
}

// chmodFD sets the mode of the file that fd is open on, O_PATH or not.
func chmodFD(fd int, mode uint32) error {
	err := unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		// fchmodat2 came with Linux 6.6, and older seccomp filters deny it.
		return chmodByProc(fd, mode)
	}
	return err
}

// chmodByProc does the same before Linux 6.6. The magic link leads to the open
// file itself, whatever its name has become.
func chmodByProc(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}
