package workspace

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// UsageLimits are ceilings at which counting stops.
type UsageLimits struct {
	Bytes   int64 // stop once more bytes than this are found; zero: no ceiling
	Entries int   // stop once more names than this are found; zero: 200,000
	// Unlock gives the owner access to directories that lack it, so that a
	// program cannot hide what it writes from an ordinary user's gaol.
	Unlock bool
}

// Usage is what a workspace takes.
type Usage struct {
	Bytes   int64 // allocated on disk, directories too, hard links once
	Entries int   // names, without the workspace directory itself
	// Truncated: a ceiling was passed, or something could not be read or
	// changed meanwhile. The figures are then lower bounds.
	Truncated bool
}

// Usage counts what the workspace takes at any depth. It looks at each entry
// once and opens directories only, so that a watchdog can call it often. Files
// that were deleted but are still open are not seen.
func (d *Dir) Usage(ctx context.Context, limits UsageLimits) (Usage, error) {
	if limits.Bytes <= 0 {
		limits.Bytes = math.MaxInt64
	}
	if limits.Entries <= 0 {
		limits.Entries = defaultEntries
	}
	c := counter{limits: limits}
	const mask = unix.STATX_TYPE | unix.STATX_NLINK | unix.STATX_INO | unix.STATX_BLOCKS
	w := walk{visitor: &c, mask: mask, unlock: limits.Unlock}
	if err := d.hold(func(fd int) error { return w.run(ctx, fd) }); err != nil {
		return c.Usage, fmt.Errorf("measure workspace: %w", err)
	}
	return c.Usage, nil
}

type counter struct {
	Usage
	limits UsageLimits
	linked map[identity]struct{} // files with more than one name, seen already
}

func (c *counter) entry(_, _ int, _ string, _ int, st *unix.Statx_t) (int, bool, error) {
	c.Entries++
	if !c.seen(st) {
		c.Bytes += int64(st.Blocks) * 512
	}
	if c.Bytes > c.limits.Bytes || c.Entries > c.limits.Entries {
		return 0, false, errStop
	}
	return 0, true, nil
}

// seen holds no more names than Entries allows.
func (c *counter) seen(st *unix.Statx_t) bool {
	if isDir(st) || st.Nlink < 2 {
		return false
	}
	if c.linked == nil {
		c.linked = map[identity]struct{}{}
	}
	id := identityOf(st)
	_, ok := c.linked[id]
	c.linked[id] = struct{}{}
	return ok
}

func (c *counter) incomplete(int, error) { c.Truncated = true }
