// Package cgroup puts one sandbox into a control group of its own, with
// limits that the kernel confirmed.
//
// A limit that was written is not yet a limit: every value is read back, and
// a group whose kernel holds anything else is taken away again. A process is
// born inside its group, never moved into it later, so nothing it does escapes
// the account.
//
//	h, err := cgroup.Find(ctx, cgroup.Config{})
//	if err != nil {
//		return err // errors.As a *cgroup.Unavailable: why, and what to do
//	}
//	g, err := h.New("gaol-7c2f", cgroup.Limits{Memory: 512 << 20, CPUs: 1, Tasks: 512})
//	if err != nil {
//		return err
//	}
//	defer g.Remove(ctx)
//	runtime.LockOSThread() // for v1; the thread ends with this goroutine
//	if err := g.JoinThread(); err != nil {
//		return err
//	}
//	cmd.SysProcAttr = &syscall.SysProcAttr{}
//	g.Place(cmd.SysProcAttr) // for v2
//	err = cmd.Start()
//
// Groups live at BASE/gaol/NAME. BASE is the operator's parent, or the group
// of this process, or (as root) the top of the hierarchy, or a scope that
// systemd delegates to the user. With cgroup v1 each controller has a tree of
// its own, and NAME is made in each.
//
// What it does not protect: it bounds memory, CPU time and host tasks, and
// nothing else (no disk, no network, no time). A parent group may be tighter
// than the limits asked for. On a host with swap whose kernel counts no swap
// (v1 without memsw, v2 without memory.swap.max), a group can use swap beyond
// its memory limit. Whoever may write the same parent can take the limits
// away: as an ordinary user that is every process of that user.
package cgroup
