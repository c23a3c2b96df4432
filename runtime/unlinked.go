package runtime

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// unlinkedBytes is what the files take that have no name in the workspace any
// more, and that the sandbox holds open: no walk of the tree finds them.
func (l *launched) unlinkedBytes(workspace *os.File) (int64, error) {
	var top unix.Stat_t
	if err := unix.Fstat(int(workspace.Fd()), &top); err != nil {
		return 0, fmt.Errorf("look at the workspace: %w", err)
	}
	var total int64
	seen := map[uint64]bool{}
	for _, pid := range []int{l.pid, l.goferPID} {
		if pid == 0 {
			continue
		}
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return 0, fmt.Errorf("look for unlinked files of the workspace: %w", err)
		}
		for _, entry := range entries {
			var st unix.Stat_t
			if unix.Stat(filepath.Join(dir, entry.Name()), &st) != nil {
				continue // closed meanwhile
			}
			if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 0 && st.Dev == top.Dev && !seen[st.Ino] {
				seen[st.Ino] = true
				total += st.Blocks * 512
			}
		}
	}
	return total, nil
}
