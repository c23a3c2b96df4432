// Package workspace is the only part of gaol that touches a workspace
// directory from the host.
//
// A workspace is hostile: the program in the sandbox may have written anything
// into it, and something may still be writing while we look. So every
// operation goes by descriptors beneath one opened directory, never by a joined
// path: openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, a look at what was
// opened before it is used, and an end to time, count, depth and memory.
//
//	dir, err := workspace.Open("/home/ann/project", workspace.Rules{Roots: []string{"/home/ann"}})
//	if err != nil {
//		return err
//	}
//	defer dir.Close()
//	before, err := dir.Scan(ctx, workspace.ScanLimits{})
//	// … the program runs …
//	after, err := dir.Scan(ctx, workspace.ScanLimits{})
//	for _, change := range workspace.Diff(before, after) {
//		fmt.Println(change.Kind, change.Path)
//	}
//
// What it does not protect:
//   - A file that the program wrote is as the program wrote it. Risky names
//     those that common tools execute; nothing here judges content.
//   - A file that was deleted while still open takes space that Usage cannot see.
//   - Before kernel 6.13 a file changed twice within one clock tick (4 ms) keeps
//     its ctime; if size and mtime were also kept, Diff misses the second change.
//   - Two hard links to one file are two names of one file; where the operator
//     linked a file from elsewhere into the workspace, writing it writes both.
//
// It needs Linux 5.6 or later, works as root and as an ordinary user, and is
// safe for concurrent use.
package workspace
