package runtime

import (
	"syscall"
	"time"

	"gaol/runtime/workspace"
)

// Outcome is how an execution ended.
type Outcome string

// Each outcome has a proof: a wait status, a counter of the kernel, or a
// decision that gaol took itself and acted on.
const (
	Exited      Outcome = "exited"       // by itself, ExitCode says how
	Signaled    Outcome = "signaled"     // by a signal inside, Signal says which
	Timeout     Outcome = "timeout"      // ran past its wall time and was killed
	OOM         Outcome = "oom"          // the kernel's oom counter moved, or the watchdog saw the limit passed
	OutputLimit Outcome = "output_limit" // wrote more than it may and was killed
	DiskLimit   Outcome = "disk_limit"   // the workspace holds more than it may
	Denied      Outcome = "denied"       // refused by the advice check before it ran
	Canceled    Outcome = "canceled"     // the caller's context ended
	StartFailed Outcome = "start_failed" // the program could not be started: Reason says why
)

// Result is what an execution did. Nothing in it was said by the program
// about itself except Stdout, Stderr and the names of Files.
type Result struct {
	Outcome  Outcome
	ExitCode int            // for Exited
	Signal   syscall.Signal // for Signaled
	Reason   string         // for people: what happened, when Outcome alone does not say it
	Start    StartFailure   // for StartFailed
	Denial   *Denial        // for Denied

	Stdout, Stderr Output
	Files          []workspace.Change
	FilesNote      string // what the listing left out, "" when it is complete
	SetIDStripped  int    // files of the workspace whose set-id bits were removed

	Usage   Usage
	Stages  []Stage
	Receipt Receipt
	Policy  string // hash of the effective policy
	Image   string // digest of the image
	ID      string // of the execution
}

// StartFailure tells why a program could not be started.
type StartFailure string

// The reasons for StartFailed.
const (
	NotFound      StartFailure = "not found"
	NotExecutable StartFailure = "not executable"
)

// Denial is the place in the code that the policy's advice rejects.
type Denial struct {
	Rule   string `json:"rule"`   // the clause of the policy
	Module string `json:"module"` // what the code imports
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Usage is what an execution cost.
type Usage struct {
	Wall       time.Duration // from the start of the program to its end
	CPU        time.Duration // of the whole sandbox, gVisor's own work included; 0 unknown, without a cgroup
	MemoryPeak int64         // bytes of the whole sandbox, gVisor's own included; 0 unknown
	TasksPeak  int           // host tasks of the whole sandbox; 0 unknown
	OOMKills   int64         // by the kernel, in the sandbox's cgroup
}

// Stage is one step on the way to a result.
type Stage struct {
	Name string
	Took time.Duration
}
