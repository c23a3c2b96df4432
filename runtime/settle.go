package runtime

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gaol/runtime/workspace"
)

// settleLimit bounds what happens between the end of the program and the
// result, besides writing output to whoever asked for it.
const settleLimit = time.Minute

// drainLimit bounds the wait for a sandbox whose program has ended, and for the
// rest of its output. All who could write are gone by then.
const drainLimit = time.Second

// settle brings the execution to rest, whether it was started or not: the
// sandbox has ended, its output has been read, and the workspace is fit to be
// touched by others.
func (x *execution) settle(ctx context.Context) error {
	if err := x.endSandbox(ctx); err != nil {
		return err
	}
	x.stages.mark("end")
	err := errors.Join(x.stdoutErr, x.stderrErr, x.settleWorkspace(ctx))
	x.stages.mark("files")
	return err
}

// endSandbox waits for the sandbox to go, which it does by itself when the
// program has ended; one that does not is killed.
func (x *execution) endSandbox(ctx context.Context) error {
	if x.sandbox == nil {
		return nil
	}
	if x.status == nil { // the program was not started
		_ = x.sandbox.kill()
	}
	soon, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	if x.sandbox.gone(soon) != nil {
		_ = x.sandbox.kill()
		if err := x.sandbox.gone(ctx); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(drainLimit)
	_ = x.sandbox.stdout.SetReadDeadline(deadline)
	_ = x.sandbox.stderr.SetReadDeadline(deadline)
	x.readers.Wait()
	return nil
}

// settleWorkspace finds what the program did to the workspace, and takes away
// what must not stay.
func (x *execution) settleWorkspace(ctx context.Context) error {
	mountsErr := x.removeMountPoints()
	after, err := x.workspace.Scan(ctx, workspace.ScanLimits{})
	if err != nil {
		return errors.Join(mountsErr, err)
	}
	x.changed = workspace.Diff(x.before, after)
	var notes []string
	if after.Truncated || x.before.Truncated {
		notes = append(notes, "the list is not complete: "+strings.Join(slices.Concat(x.before.Notes, after.Notes), "; "))
	}
	switch {
	case x.managed: // it goes with the lease
	case after.Truncated:
		// What is beyond the listing may have the bits too.
		x.stripped, err = x.workspace.StripSetIDSince(ctx, x.stages.began)
	default:
		x.stripped, err = x.workspace.StripSetID(ctx, x.changed)
	}
	// What lies in the workspace and is not the caller's, or on another disk,
	// cannot be changed by us; no more could the program.
	if err = errors.Join(mountsErr, err); err != nil {
		notes = append(notes, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	x.filesNote = strings.Join(notes, "; ")
	return nil
}

// noteMountPoints finds which mount points are not in the workspace: gVisor
// makes them there for the mounts to cover.
func (x *execution) noteMountPoints() error {
	for _, m := range x.req.Mounts {
		rel, inside := strings.CutPrefix(m.Destination, workspacePath+"/")
		for ; inside && rel != "."; rel = path.Dir(rel) {
			there, err := x.workspace.Exists(rel)
			if err != nil {
				return fmt.Errorf("look for the mount point %s: %w", m.Destination, err)
			}
			if !there && !slices.Contains(x.absent, rel) {
				x.absent = append(x.absent, rel)
			}
		}
	}
	return nil
}

// removeMountPoints takes away the empty files and directories that gVisor made
// for mounts. What the program filled stays.
func (x *execution) removeMountPoints() error {
	// The deepest first.
	slices.SortFunc(x.absent, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	var errs []error
	for _, rel := range x.absent {
		errs = append(errs, x.workspace.RemoveEmpty(rel))
	}
	return errors.Join(errs...)
}
