package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"gaol/images"
)

// progress shows how far a long operation is: one changing line on a terminal,
// elsewhere a line for each stage.
type progress struct {
	w        io.Writer
	terminal bool
	stage    string
	last     time.Time
	dirty    bool
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w) && os.Getenv("TERM") != "dumb"}
}

func (p *progress) show(step images.Progress) {
	if !p.terminal {
		if step.Stage != p.stage {
			fmt.Fprintf(p.w, "gaol: %s %s\n", step.Stage, lineText(step.Item))
		}
		p.stage = step.Stage
		return
	}
	if step.Stage == p.stage && time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.stage, p.last, p.dirty = step.Stage, time.Now(), true
	how := ""
	switch {
	case step.Total > 0:
		how = fmt.Sprintf(" %d%%", 100*step.Done/step.Total)
	case step.Done > 0:
		how = " " + bytesText(step.Done)
	}
	fmt.Fprintf(p.w, "\r\x1b[Kgaol: %s %.60s%s", step.Stage, lineText(step.Item), how)
}

// end clears the line.
func (p *progress) end() {
	if p.dirty {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
