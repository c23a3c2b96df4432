package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Effective is a policy with its history: which layer set each value, and what
// lower layers asked for in vain. It is immutable; each layer yields a new one.
type Effective struct {
	Policy Policy
	Source map[string]string // "limits.memory" to the name of the layer that set it
	Clamps []Clamp           // in the order of the layers
}

// Clamp says that a layer asked for more than the layers above it allow. The
// policy holds the allowed value.
type Clamp struct {
	Field   string // "limits.memory"
	Asked   string // for a list: the entries that are not allowed
	Allowed string
	Layer   string // who asked
	By      string // whose value holds
}

// String is a sentence for a person.
func (c Clamp) String() string {
	return fmt.Sprintf("%s: %s asks for %s; %s allows %s", c.Field, c.Layer, c.Asked, c.By, c.Allowed)
}

// Operator applies config.toml: whoever owns the host may replace built-in
// values, also by larger ones. Call it once, before any Narrow. The system
// call profile stays the exception: nothing adds to what is built in.
func (e Effective) Operator(name string, d Document) Effective {
	return e.apply(layer{name: name, replaces: true}, d)
}

// Narrow applies a lower layer: a policy file, a manifest, a request. The
// result allows at most what e and d both allow: numbers take the smaller,
// allow lists intersect, deny lists unite, of nested directories the inner
// stays. Asking for more yields a Clamp, never more. Narrowing twice by one
// document is narrowing once, and the order of documents does not change the
// policy that comes out.
//
// A value out of range passes through when it is the smaller one: call
// Policy.Validate on the final policy of documents that no parser checked.
func (e Effective) Narrow(name string, d Document) Effective {
	return e.apply(layer{name: name}, d)
}

// layer is one application of a document to a private copy of an Effective.
type layer struct {
	name     string
	replaces bool
	out      Effective
}

func (e Effective) apply(l layer, d Document) Effective {
	l.out = Effective{Policy: e.Policy.clone(), Source: maps.Clone(e.Source), Clamps: slices.Clone(e.Clamps)}
	if l.out.Source == nil {
		l.out.Source = map[string]string{}
	}
	p := &l.out.Policy
	l.limits(&p.Limits, d.Limits)
	l.seccompAllow(&p.Seccomp.Allow, d.Seccomp.Allow)
	l.denied("seccomp.deny", &p.Seccomp.Deny, d.Seccomp.Deny)
	l.allowed("env.allow", &p.Env.Allow, d.Env.Allow)
	l.roots("files.roots", &p.Files.Roots, d.Files.Roots)
	l.denied("python.deny_imports", &p.Python.DenyImports, d.Python.DenyImports)
	l.allowed("images.allowed", &p.Images.Allowed, d.Images.Allowed)
	l.allowed("enforcement.allow_unenforced", &p.Enforcement.AllowUnenforced, d.Enforcement.AllowUnenforced)
	return l.out
}

func (l *layer) limits(have *Limits, asked LimitsPart) {
	smaller(l, "limits.memory", &have.Memory, asked.Memory)
	smaller(l, "limits.cpus", &have.CPUs, asked.CPUs)
	smaller(l, "limits.pids", &have.PIDs, asked.PIDs)
	smaller(l, "limits.timeout", &have.Timeout, asked.Timeout)
	smaller(l, "limits.output", &have.Output, asked.Output)
	smaller(l, "limits.output_total", &have.OutputTotal, asked.OutputTotal)
	smaller(l, "limits.open_files", &have.OpenFiles, asked.OpenFiles)
	smaller(l, "limits.file_size", &have.FileSize, asked.FileSize)
	smaller(l, "limits.tmp", &have.Tmp, asked.Tmp)
	smaller(l, "limits.shm", &have.Shm, asked.Shm)
	smaller(l, "limits.workspace", &have.Workspace, asked.Workspace)
	smaller(l, "limits.workspace_files", &have.WorkspaceFiles, asked.WorkspaceFiles)
}

// smaller keeps the lesser of two numbers. cmp.Compare puts NaN below all
// numbers, so that it wins and Validate refuses it.
func smaller[T cmp.Ordered](l *layer, field string, have, asked *T) {
	if asked == nil {
		return
	}
	order := cmp.Compare(*asked, *have)
	switch {
	case l.replaces, order < 0:
		*have = *asked
		l.out.Source[field] = l.name
	case order > 0:
		l.clamp(field, fmt.Sprint(*asked), fmt.Sprint(*have))
	}
}

func (l *layer) clamp(field, asked, allowed string) {
	l.out.Clamps = append(l.out.Clamps, Clamp{
		Field: field, Asked: asked, Allowed: allowed, Layer: l.name, By: l.out.Source[field],
	})
}

func (l *layer) clampList(field string, refused, allowed []string) {
	if len(refused) > 0 {
		l.clamp(field, printList(refused), printList(allowed))
	}
}

func printList(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}
