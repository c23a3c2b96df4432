package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
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
	Policy       string          `json:"policy"`
	Image        string          `json:"image"`
	ID           string          `json:"id"`
}

type fileJSON struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"` // when the name is not UTF-8
	Change     string `json:"change"`
	Size       int64  `json:"size"`
	Type       string `json:"type"` // a MIME type, or what it is instead of a regular file
	Target     string `json:"target,omitempty"`
	Risky      bool   `json:"risky,omitempty"` // common tools would execute it
}

type usageJSON struct {
	WallMS     float64 `json:"wall_ms"`
	CPUMS      float64 `json:"cpu_ms"`
	MemoryPeak int64   `json:"memory_peak_bytes"`
	PIDsPeak   int     `json:"pids_peak"`
}

type startJSON struct {
	Mode   string             `json:"mode"`
	MS     float64            `json:"ms"`
	Stages map[string]float64 `json:"stages"`
}

// output wires the program's streams to ours and returns how to end that.
func (a *app) output(f *runFlags, req *runtime.Request) flushers {
	if f.json {
		return nil
	}
	var out flushers
	wire := func(w io.Writer) io.Writer {
		if f.raw || !isTerminal(w) {
			return w
		}
		s := &safeWriter{w: w}
		out = append(out, s)
		return s
	}
	req.Stdout, req.Stderr = wire(a.stdout), wire(a.stderr)
	return out
}

type flushers []*safeWriter

func (f flushers) flush() error {
	for _, s := range f {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printResult(f *runFlags, r *runtime.Result, kept string) error {
	if f.json {
		return encodeJSON(a.stdout, newResultJSON(r, kept))
	}
	if !f.quiet {
		fmt.Fprint(a.stderr, summary(r, kept))
	}
	if f.receipt {
		fmt.Fprint(a.stderr, receiptText(r))
	}
	return nil
}

func encodeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

func newResultJSON(r *runtime.Result, kept string) resultJSON {
	j := resultJSON{
		Outcome: r.Outcome, Reason: r.Reason, Denial: r.Denial,
		StdoutBytes: r.Stdout.Total, StderrBytes: r.Stderr.Total,
		Truncated: r.Stdout.Truncated() || r.Stderr.Truncated(),
		Encoding:  "utf-8", Files: []fileJSON{}, FilesNote: r.FilesNote, Workspace: kept,
		Usage: usageJSON{
			WallMS: milliseconds(r.Usage.Wall), CPUMS: milliseconds(r.Usage.CPU),
			MemoryPeak: r.Usage.MemoryPeak, PIDsPeak: r.Usage.TasksPeak,
		},
		Start:   startJSON{Mode: "cold", Stages: map[string]float64{}},
		Receipt: r.Receipt, Policy: r.Policy, Image: r.Image, ID: r.ID,
	}
	if r.Outcome == runtime.Exited {
		j.ExitCode = &r.ExitCode
	}
	if r.Outcome == runtime.Signaled {
		name := signalName(r)
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
		j.Start.Stages[s.Name] = milliseconds(s.Took)
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

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

func signalName(r *runtime.Result) string {
	if name := unix.SignalName(r.Signal); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(r.Signal))
}

// summary is what a person wants to know in a few lines.
func summary(r *runtime.Result, kept string) string {
	var b strings.Builder
	var how string
	switch r.Outcome {
	case runtime.Exited:
		how = fmt.Sprintf("exited %d", r.ExitCode)
	case runtime.Signaled:
		how = "ended by " + signalName(r)
	default:
		how = string(r.Outcome)
	}
	if r.Reason != "" {
		how += ": " + safeText(r.Reason)
	}
	fmt.Fprintf(&b, "gaol: %s · %s · cpu %s · memory %s\n", how,
		rounded(r.Usage.Wall), rounded(r.Usage.CPU), bytesText(r.Usage.MemoryPeak))
	for _, c := range r.Files {
		fmt.Fprintf(&b, "gaol: %s\n", fileText(c))
	}
	if r.FilesNote != "" {
		fmt.Fprintf(&b, "gaol: note: %s\n", safeText(r.FilesNote))
	}
	if r.SetIDStripped > 0 {
		fmt.Fprintf(&b, "gaol: note: set-id bits of %d files were removed\n", r.SetIDStripped)
	}
	if kept != "" {
		fmt.Fprintf(&b, "gaol: workspace kept in %s\n", kept)
	}
	return b.String()
}

func fileText(c workspace.Change) string {
	name := c.Path
	if quoted := strconv.Quote(name); c.Raw != nil || quoted != `"`+name+`"` || strings.ContainsAny(name, " '") || strings.HasPrefix(name, "-") {
		name = quoted
		if c.Raw != nil {
			name = strconv.Quote(string(c.Raw))
		}
	}
	text := fmt.Sprintf("%s %s", c.Kind, name)
	if c.Kind != workspace.Deleted {
		what := c.MIME
		if what == "" {
			what = c.Type
		}
		text += fmt.Sprintf(" (%s, %s)", bytesText(c.Size), what)
	}
	if c.Risky {
		text += " — common tools would execute it"
	}
	return text
}

func rounded(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}

func receiptText(r *runtime.Result) string {
	var b strings.Builder
	b.WriteString("gaol: receipt\n")
	for _, name := range append(policy.LimitNames(), "network", "rootfs", "seccomp") {
		if means, ok := r.Receipt[name]; ok {
			fmt.Fprintf(&b, "gaol:   %-16s %s\n", name, means)
		}
	}
	b.WriteString("gaol: stages\n")
	for _, s := range r.Stages {
		fmt.Fprintf(&b, "gaol:   %-16s %s\n", s.Name, rounded(s.Took))
	}
	fmt.Fprintf(&b, "gaol: policy %s\ngaol: image  %s\ngaol: id     %s\n", r.Policy, r.Image, r.ID)
	return b.String()
}
