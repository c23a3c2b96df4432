package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// LimitNames lists the keys of Limits, the names that receipts and
// Enforcement use.
func LimitNames() []string {
	return []string{
		"memory", "cpus", "pids", "timeout", "output", "output_total",
		"open_files", "file_size", "tmp", "shm", "workspace", "workspace_files",
	}
}

// Fields lists the dotted keys of a Policy in the order of config.toml, the
// keys of Effective.Source.
func Fields() []string {
	var fields []string
	for _, name := range LimitNames() {
		fields = append(fields, "limits."+name)
	}
	return append(fields,
		"seccomp.allow", "seccomp.deny", "env.allow", "files.roots",
		"python.deny_imports", "images.allowed", "enforcement.allow_unenforced",
	)
}

// clone shares no memory with p, and has its lists in order without doubles.
// Nil and empty stay apart for the one list where they differ.
func (p Policy) clone() Policy {
	if p.Seccomp.Allow != nil {
		p.Seccomp.Allow = sorted(p.Seccomp.Allow)
	}
	p.Seccomp.Deny = sorted(p.Seccomp.Deny)
	p.Env.Allow = allowList(p.Env.Allow)
	p.Files.Roots = outermost(p.Files.Roots)
	p.Python.DenyImports = sorted(p.Python.DenyImports)
	p.Images.Allowed = allowList(p.Images.Allowed)
	p.Enforcement.AllowUnenforced = sorted(p.Enforcement.AllowUnenforced)
	return p
}

// Hash names the policy: "sha256:" and 64 hex digits over its JSON with sorted
// lists. Policies that say the same have the same hash.
func (p Policy) Hash() string {
	text, err := json.Marshal(p.clone())
	if err != nil { // only for CPUs of NaN or infinity, which Validate refuses
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
