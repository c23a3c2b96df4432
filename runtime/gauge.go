package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// gauge reads how much memory a sandbox holds where no cgroup counts it. What
// the sandboxed program holds, its tmpfs files included, is a memfd of the
// sandbox process; gVisor's own is that process's anonymous memory. The memfd's
// size on its file system is exact: the pages are mapped mostly by the stub
// processes, so that no process's resident set shows them.
type gauge struct {
	memfds []*os.File
	status *os.File
	buf    []byte
}

// maxStatus holds a process's status with all the groups that it can be in.
const maxStatus = 1 << 20

var errNoMemfd = errors.New("the sandbox process shows no memory file")

// newGauge opens the gauge of a sandbox process. The caller closes it soon
// after the sandbox has ended: it keeps the memory alive.
func newGauge(pid int) (_ *gauge, err error) {
	g := &gauge{buf: make([]byte, maxStatus)}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	proc := fmt.Sprintf("/proc/%d", pid)
	if g.status, err = os.Open(filepath.Join(proc, "status")); err != nil {
		return nil, fmt.Errorf("open the sandbox's memory gauge: %w", err)
	}
	entries, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return nil, fmt.Errorf("open the sandbox's memory gauge: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(proc, "fd", entry.Name())
		if target, err := os.Readlink(path); err != nil || !strings.HasPrefix(target, "/memfd:") {
			continue
		}
		f, err := os.OpenFile(path, unix.O_PATH, 0)
		if err != nil {
			return nil, fmt.Errorf("open the sandbox's memory gauge: %w", err)
		}
		g.memfds = append(g.memfds, f)
	}
	if len(g.memfds) == 0 {
		return nil, fmt.Errorf("open the sandbox's memory gauge: %w", errNoMemfd)
	}
	return g, nil
}

// errNoGauge: the process shows no memory, as one that ends does.
var errNoGauge = errors.New("the sandbox process shows no memory")

// read returns the bytes held.
func (g *gauge) read() (int64, error) {
	n, err := g.status.ReadAt(g.buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read the sandbox's memory gauge: %w", err)
	}
	total, ok := anonymousMemory(g.buf[:n])
	if !ok {
		return 0, fmt.Errorf("read the sandbox's memory gauge: %w", errNoGauge)
	}
	for _, f := range g.memfds {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return 0, fmt.Errorf("read the sandbox's memory gauge: %w", err)
		}
		total += st.Blocks * 512
	}
	return total, nil
}

func (g *gauge) close() {
	if g.status != nil {
		_ = g.status.Close()
	}
	for _, f := range g.memfds {
		_ = f.Close()
	}
}

// anonymousMemory is RssAnon of /proc/PID/status in bytes.
func anonymousMemory(status []byte) (int64, bool) {
	for line := range bytes.Lines(status) {
		rest, ok := bytes.CutPrefix(line, []byte("RssAnon:"))
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
		return kib << 10, err == nil
	}
	return 0, false
}
