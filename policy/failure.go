package policy

import (
	"errors"
	"fmt"
	"strings"
)

// Classes of failure, for errors.Is.
var (
	// ErrSyntax: the text is not TOML, or not text at all.
	ErrSyntax = errors.New("not valid TOML")
	// ErrUnknownKey: the key means nothing here, most often a typo.
	ErrUnknownKey = errors.New("unknown key")
	// ErrValue: the key is known, its value is of a wrong type or out of range.
	ErrValue = errors.New("invalid value")
	// ErrUnknownSyscall: no supported architecture has a system call of that
	// name. It is an ErrValue too.
	ErrUnknownSyscall = fmt.Errorf("%w: unknown system call", ErrValue)
	// ErrUnsafeFile: someone else could have written the file.
	ErrUnsafeFile = errors.New("unsafe policy file")
	// ErrUnsupportedArch: there is no seccomp profile for the architecture.
	ErrUnsupportedArch = errors.New("unsupported architecture")
)

// Error places a failure: errors.As finds it in what this package returns.
type Error struct {
	File   string // as named by the caller; empty if the value came from no file
	Line   int    // from 1; 0 if unknown
	Column int    // in characters, from 1; 0 if unknown
	Key    string // dotted, such as "limits.memory"; empty if about no key
	Err    error
}

// Error prints "file:line:column: key: failure" as far as known.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s:", e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
		}
		b.WriteByte(' ')
	}
	if e.Key != "" {
		fmt.Fprintf(&b, "%s: ", e.Key)
	}
	return b.String() + e.Err.Error()
}

// Unwrap yields the failure itself.
func (e *Error) Unwrap() error { return e.Err }
