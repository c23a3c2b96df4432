package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// conclude gathers the result of an execution that was started.
func (x *execution) conclude(ctx context.Context, settleErr error) (*Result, error) {
	r := x.result()
	r.Stdout, r.Stderr = x.stdout.out, x.stderr.out
	r.Files, r.FilesNote, r.SetIDStripped = x.changed, x.filesNote, x.stripped
	err := errors.Join(settleErr, x.usage(r), x.outcome(ctx, r))
	r.Stages = x.stages.list
	return r, err
}

func (x *execution) result() *Result {
	return &Result{
		Receipt: x.plan.receipt,
		Policy:  x.req.Policy.Hash(),
		Image:   x.req.Rootfs.Digest,
		ID:      x.lease.id,
		Stages:  x.stages.list,
	}
}

func (x *execution) usage(r *Result) error {
	r.Usage.Wall = x.ended.Sub(x.began)
	r.Usage.MemoryPeak = x.peak
	if x.group == nil {
		return nil
	}
	u, err := x.group.Usage()
	if err != nil {
		return err
	}
	r.Usage.CPU, r.Usage.MemoryPeak = u.CPU, u.MemoryPeak
	r.Usage.TasksPeak, r.Usage.OOMKills = u.TasksPeak, int64(u.OOMKills)
	return nil
}

// outcome decides how the execution ended. What gaol itself decided comes
// first, then the kernel's counter, then the program's own wait status.
func (x *execution) outcome(ctx context.Context, r *Result) error {
	over, err := x.overWorkspace(ctx)
	if err != nil {
		return err
	}
	byItself := x.endedByItself()
	late := byItself && (x.verdict == Timeout || x.verdict == Canceled)
	switch {
	case x.failure != nil:
		return x.failure
	case x.verdict != "" && !late:
		r.Outcome, r.Reason = x.verdict, x.reason
	case r.Usage.OOMKills > 0 && !byItself:
		r.Outcome = OOM
		r.Reason = fmt.Sprintf("used more than %s of memory", x.req.Policy.Limits.Memory)
	case over != "":
		r.Outcome, r.Reason = DiskLimit, over
	case x.exitErr != nil:
		return fmt.Errorf("%w: %w", ErrLost, x.exitErr)
	case x.exit.Signaled():
		r.Outcome, r.Signal = Signaled, x.exit.Signal()
	default:
		r.Outcome, r.ExitCode = Exited, x.exit.ExitStatus()
	}
	if r.Outcome == Exited && r.ExitCode == deniedExit {
		if r.Denial = x.frame.denial(r.Stderr.Bytes()); r.Denial != nil {
			r.Outcome, r.Stderr = Denied, Output{}
			r.Reason = fmt.Sprintf("line %d imports %s, which the policy denies (python.deny_imports)", r.Denial.Line, r.Denial.Module)
		}
	}
	return nil
}

// endedByItself tells whether the program, not its sandbox, came to an end. A
// sandbox that is killed gives no status: where there is one the program had
// ended, whatever was decided in the same moment.
func (x *execution) endedByItself() bool {
	return x.exitErr == nil && (!x.exit.Signaled() || x.exit.Signal() != syscall.SIGKILL)
}

// explain turns gVisor's account of a request that cannot be fulfilled into one
// that says what to change.
func (x *execution) explain(err error) error {
	var remote *remoteError
	if errors.As(err, &remote) && strings.Contains(remote.text, "process working directory") {
		return fmt.Errorf("%w: the working directory %q is neither in the image nor in the workspace", ErrBadRequest, x.req.WorkDir)
	}
	return err
}

// startFailure turns runsc's refusal to start the program into a result, nil
// when it was gaol's or the host's fault.
func (x *execution) startFailure(err error) *Result {
	var remote *remoteError
	if !errors.As(err, &remote) {
		return nil
	}
	var failure StartFailure
	switch text := remote.text; {
	case !strings.Contains(text, "executable") && !strings.Contains(text, "failed to load"):
		return nil
	case strings.Contains(text, "permission denied"), strings.Contains(text, "exec format error"):
		failure = NotExecutable
	case strings.Contains(text, "no such file"):
		failure = NotFound
	default:
		return nil
	}
	name := "python3"
	if x.req.Code == nil {
		name = x.req.Command[0]
	}
	r := x.result()
	r.Outcome, r.Start = StartFailed, failure
	r.Reason = fmt.Sprintf("%s: %s in the image", name, failure)
	return r
}
