package policy

import "errors"

// Document is a partly filled policy: what one file or request says. Its keys
// are those of Policy. A nil field says nothing, which differs from an empty
// list. Embed it in a larger struct to read its tables beside others
// (DecodeStrict).
type Document struct {
	Limits      LimitsPart      `toml:"limits" json:"limits,omitzero"`
	Seccomp     SeccompPart     `toml:"seccomp" json:"seccomp,omitzero"`
	Env         EnvPart         `toml:"env" json:"env,omitzero"`
	Files       FilesPart       `toml:"files" json:"files,omitzero"`
	Python      PythonPart      `toml:"python" json:"python,omitzero"`
	Images      ImagesPart      `toml:"images" json:"images,omitzero"`
	Enforcement EnforcementPart `toml:"enforcement" json:"enforcement,omitzero"`
}

// LimitsPart is what a Document says of Limits.
type LimitsPart struct {
	Memory         *Size     `toml:"memory" json:"memory,omitzero"`
	CPUs           *CPUs     `toml:"cpus" json:"cpus,omitzero"`
	PIDs           *int      `toml:"pids" json:"pids,omitzero"`
	Timeout        *Duration `toml:"timeout" json:"timeout,omitzero"`
	Output         *Size     `toml:"output" json:"output,omitzero"`
	OutputTotal    *Size     `toml:"output_total" json:"output_total,omitzero"`
	OpenFiles      *int      `toml:"open_files" json:"open_files,omitzero"`
	FileSize       *Size     `toml:"file_size" json:"file_size,omitzero"`
	Tmp            *Size     `toml:"tmp" json:"tmp,omitzero"`
	Shm            *Size     `toml:"shm" json:"shm,omitzero"`
	Workspace      *Size     `toml:"workspace" json:"workspace,omitzero"`
	WorkspaceFiles *int      `toml:"workspace_files" json:"workspace_files,omitzero"`
}

// SeccompPart is what a Document says of Seccomp.
type SeccompPart struct {
	Allow []string `toml:"allow" json:"allow,omitzero"`
	Deny  []string `toml:"deny" json:"deny,omitzero"`
}

// EnvPart is what a Document says of Env.
type EnvPart struct {
	Allow []string `toml:"allow" json:"allow,omitzero"`
}

// FilesPart is what a Document says of Files.
type FilesPart struct {
	Roots []string `toml:"roots" json:"roots,omitzero"`
}

// PythonPart is what a Document says of Python.
type PythonPart struct {
	DenyImports []string `toml:"deny_imports" json:"deny_imports,omitzero"`
}

// ImagesPart is what a Document says of Images.
type ImagesPart struct {
	Allowed []string `toml:"allowed" json:"allowed,omitzero"`
}

// EnforcementPart is what a Document says of Enforcement.
type EnforcementPart struct {
	AllowUnenforced []string `toml:"allow_unenforced" json:"allow_unenforced,omitzero"`
}

// Validate checks each value that the document sets by the rules of
// Policy.Validate. The errors carry keys, no positions; DecodeStrict adds
// those.
func (d Document) Validate() error {
	l := layer{replaces: true, out: Effective{Source: map[string]string{}}}
	limits := builtinLimits()
	l.limits(&limits, d.Limits)
	lists := Policy{
		Seccomp:     Seccomp(d.Seccomp),
		Env:         Env(d.Env),
		Files:       Files(d.Files),
		Python:      Python(d.Python),
		Images:      Images(d.Images),
		Enforcement: Enforcement(d.Enforcement),
	}
	return errors.Join(limits.validate(), lists.validateLists())
}

// ParseDocument reads a policy file's text; name is used in errors only. An
// empty text is a document that says nothing. Errors are *Error with a
// position, of the class ErrSyntax, ErrUnknownKey, ErrValue or
// ErrUnknownSyscall.
func ParseDocument(name string, data []byte) (Document, error) {
	var d Document
	if err := DecodeStrict(name, data, &d); err != nil {
		return Document{}, err
	}
	return d, nil
}
