package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"gaol/images"
	"gaol/policy"
	"gaol/runtime"
)

// The exit codes of `gaol run` besides the program's own.
const (
	exitLimit         = 123 // stopped at its output or disk limit
	exitTimeout       = 124
	exitCannot        = 125 // gaol could not do its part
	exitNotExecutable = 126 // denied, or not executable
	exitNotFound      = 127
	exitOOM           = 137
	exitSignal        = 128 // plus the signal's number
)

// exitError ends gaol with a code and without a word: all was said already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// exitOf is the exit code of `gaol run` for a result.
func exitOf(r *runtime.Result, interrupted syscall.Signal) exitError {
	switch r.Outcome {
	case runtime.Exited:
		return exitError(r.ExitCode)
	case runtime.Signaled:
		return exitError(exitSignal + int(r.Signal))
	case runtime.Timeout:
		return exitTimeout
	case runtime.OOM:
		return exitOOM
	case runtime.OutputLimit, runtime.DiskLimit:
		return exitLimit
	case runtime.Denied:
		return exitNotExecutable
	case runtime.Canceled:
		return exitError(exitSignal + int(interrupted))
	case runtime.StartFailed:
		if r.Start == runtime.NotFound {
			return exitNotFound
		}
		return exitNotExecutable
	}
	return exitCannot
}

// hinted is an error with what the user can do about it.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

func printError(w io.Writer, err error, own []string) {
	say(w, "error", err.Error())
	if hint := hintFor(err, own); hint != "" {
		say(w, "hint", hint)
	}
}

// say prints a message. What follows its first line is indented, so that no name
// in it can pass for a message of its own.
func say(w io.Writer, kind, text string) {
	fmt.Fprintf(w, "gaol: %s: %s\n", kind, strings.ReplaceAll(safeText(text), "\n", "\n  "))
}

const hintUnsafeFile = "the file must be yours or root's and writable by nobody else"

// hintFor says what the user can do about an error, "" when nothing is known.
// own are gaol's own directories.
func hintFor(err error, own []string) string {
	var (
		h       *hinted
		missing *images.NotFoundError
		cannot  *runtime.CannotEnforceError
	)
	switch {
	case errors.As(err, &h):
		return h.hint
	case errors.As(err, &missing):
		return "" // its text has the command
	case errors.As(err, &cannot):
		return "`gaol doctor` says what this host lacks; enforcement.allow_unenforced in config.toml lets the run go on without"
	case errors.Is(err, runtime.ErrRunsc):
		return "`make build` makes runsc beside gaol; runsc in config.toml names another one"
	case errors.Is(err, runtime.ErrNotRoot):
		return "run gaol as an ordinary user, or give the container this capability"
	case errors.Is(err, runtime.ErrNoUserns):
		return "`gaol doctor` says which switch forbids them and how to set it"
	case errors.Is(err, runtime.ErrIDMap):
		return "bind a directory of another file system (ext4, xfs, btrfs, tmpfs), or run gaol as the ordinary user who owns it"
	case errors.Is(err, policy.ErrUnsafeFile):
		return hintUnsafeFile
	case errors.Is(err, syscall.ENOSPC) && aboutOneOf(own, err):
		return "the disk is full; `gaol images prune` and `gaol gc` free what gaol itself no longer needs"
	}
	return ""
}

// aboutOneOf tells whether an error is about a file in one of the directories.
func aboutOneOf(dirs []string, err error) bool {
	var at *fs.PathError
	return errors.As(err, &at) && slices.ContainsFunc(dirs, func(dir string) bool { return inside(at.Path, dir) })
}

// inside tells whether an absolute path is a directory or lies in it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
