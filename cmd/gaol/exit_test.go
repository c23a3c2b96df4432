package main

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"gaol/runtime"
)

// A full disk is gaol's to free only where gaol's own files are.
func TestHintForFullDisk(t *testing.T) {
	own := []string{"/data", "/state/"}
	for path, want := range map[string]bool{
		"/data":        true,
		"/data/images": true,
		"/state/run/x": true,
		"/database":    false,
		"/srv/out.csv": false,
		"/dev/stdout":  false,
	} {
		err := fmt.Errorf("write: %w", &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC})
		if got := hintFor(err, own) != ""; got != want {
			t.Errorf("%s: a hint: %t, want %t", path, got, want)
		}
	}
	if hint := hintFor(syscall.ENOSPC, own); hint != "" {
		t.Errorf("without a path: %s", hint)
	}
}

// What only the user can change has a hint, however deep the error lies.
func TestHintForIDMap(t *testing.T) {
	err := fmt.Errorf("set the attributes of the mount of /srv: %w", runtime.ErrIDMap)
	if hintFor(err, nil) == "" {
		t.Error("no hint")
	}
}
