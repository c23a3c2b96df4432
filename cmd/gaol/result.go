package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/runtime/workspace"
)

// resultJSON is the object that `gaol run --json` prints.
type resultJSON struct {
	Outcome      runtime.Outcome `json:"outcome"`
	ExitCode     *int            `json:"exit_code"` // null unless the program exited
	Signal       *string         `json:"signal"`    // such as "SIGKILL"; null unless a signal ended it
	Reason       string          `json:"reason,omitempty"`
	Denial       *runtime.Denial `json:"denial,omitempty"`
	Stdout       string          `json:"stdout"`
	Stderr       string          `json:"stderr"`
	StdoutBase64 string          `json:"stdout_base64,omitempty"` // the bytes, when they are not UTF-8
	StderrBase64 string          `json:"stderr_base64,omitempty"`
	StdoutBytes  int64           `json:"stdout_bytes"` // that the program wrote
	StderrBytes  int64           `json:"stderr_bytes"`
	Truncated    bool            `json:"truncated"`
	Encoding     string          `json:"encoding"` // "utf-8", or "utf-8-lossy" when bytes were replaced
	Files        []fileJSON      `json:"files"`
	FilesNote    string          `json:"files_note,omitempty"`
	Workspace    string          `json:"workspace,omitempty"` // where a kept one is
	Usage        usageJSON       `json:"usage"`
	Start        startJSON       `json:"start"`
	Receipt      runtime.Receipt `json:"receipt"`
	Notes        []string        `json:"notes"` // what was asked of the policy in vain
	Policy       string          `json:"policy"`
	Image        string          `json:"image"`
	ID           string          `json:"id"`
}

// noResultJSON is what it prints when there is no result.
type noResultJSON struct {
	Outcome  runtime.Outcome `json:"outcome"`   // "error": gaol could not do its part; or canceled
	ExitCode *int            `json:"exit_code"` // null
	Reason   string          `json:"reason"`
}

type fileJSON struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"` // when the name is not UTF-8
	Change     string `json:"change"`
	Size       int64  `json:"size"`
	Type       string `json:"type"` // a MIME type, or what it is instead of a regular file
	Target     string `json:"target,omitempty"`
	Risky      bool   `json:"risky,omitempty"` // common tools would execute it, or a link that leads out
}

type usageJSON struct {
	WallMS     float64  `json:"wall_ms"`
	CPUMS      *float64 `json:"cpu_ms"` // this and the next two: null when not known
	MemoryPeak *int64   `json:"memory_peak_bytes"`
	PIDsPeak   *int     `json:"pids_peak"`
	OOMKills   int64    `json:"oom_kills"`
}

type startJSON struct {
	Mode   string             `json:"mode"`
	MS     float64            `json:"ms"`
	Stages map[string]float64 `json:"stages"`
}

func encodeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

// encodeIndented is for JSON that people read.
func encodeIndented(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

func newResultJSON(r *runtime.Result, kept string, notes []string) resultJSON {
	j := resultJSON{
		Outcome: r.Outcome, Reason: r.Reason, Denial: r.Denial,
		StdoutBytes: r.Stdout.Total, StderrBytes: r.Stderr.Total,
		Truncated: r.Stdout.Truncated() || r.Stderr.Truncated(),
		Encoding:  "utf-8", Files: []fileJSON{}, FilesNote: r.FilesNote, Workspace: kept, Notes: notes,
		Usage: usageJSON{
			WallMS: milliseconds(r.Usage.Wall), CPUMS: known(milliseconds(r.Usage.CPU)),
			MemoryPeak: known(r.Usage.MemoryPeak), PIDsPeak: known(r.Usage.TasksPeak), OOMKills: r.Usage.OOMKills,
		},
		Start:   startJSON{Mode: "cold", Stages: map[string]float64{}},
		Receipt: r.Receipt, Policy: r.Policy, Image: r.Image, ID: r.ID,
	}
	if r.Outcome == runtime.Exited {
		j.ExitCode = &r.ExitCode
	}
	if r.Outcome == runtime.Signaled {
		name := signalName(r.Signal)
		j.Signal = &name
	}
	j.Stdout, j.StdoutBase64 = streamJSON(r.Stdout)
	j.Stderr, j.StderrBase64 = streamJSON(r.Stderr)
	if j.StdoutBase64 != "" || j.StderrBase64 != "" {
		j.Encoding = "utf-8-lossy"
	}
	for _, c := range r.Files {
		j.Files = append(j.Files, newFileJSON(c))
	}
	for _, s := range r.Stages {
		j.Start.Stages[strings.ReplaceAll(s.Name, " ", "_")] = milliseconds(s.Took)
		if s.Name == "create" || s.Name == "start" || slices.Contains(preparation, s.Name) {
			j.Start.MS += milliseconds(s.Took)
		}
	}
	return j
}

// preparation are the stages before the sandbox is made.
var preparation = []string{"workspace", "cgroup", "bundle"}

func newFileJSON(c workspace.Change) fileJSON {
	f := fileJSON{Path: c.Path, Change: string(c.Kind), Size: c.Size, Type: c.MIME, Target: c.Target, Risky: c.Risky}
	if c.Raw != nil {
		f.PathBase64 = base64.StdEncoding.EncodeToString(c.Raw)
	}
	if f.Type == "" {
		f.Type = c.Type
	}
	return f
}

// streamJSON is a stream as text, with a mark where bytes are missing, and its
// bytes in base64 when they are not UTF-8.
func streamJSON(o runtime.Output) (text, encoded string) {
	if !o.UTF8() {
		encoded = base64.StdEncoding.EncodeToString(o.Bytes())
	}
	if !o.Truncated() {
		return strings.ToValidUTF8(string(o.Bytes()), "\uFFFD"), encoded
	}
	cut := o.Total - int64(len(o.Head)+len(o.Tail))
	head, tail := o.TextParts()
	return fmt.Sprintf("%s\n[gaol: %d bytes cut]\n%s", strings.ToValidUTF8(head, "\uFFFD"), cut, strings.ToValidUTF8(tail, "\uFFFD")), encoded
}

// known is nil for 0, which stands for what could not be measured.
func known[T comparable](value T) *T {
	var unknown T
	if value == unknown {
		return nil
	}
	return &value
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}
