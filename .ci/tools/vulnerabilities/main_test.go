package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const (
		scan   = `{"config":{"protocol_version":"v1.0.0"}}`
		called = `{"finding":{"osv":"GO-1","fixed_version":"v2","trace":[{"module":"m","version":"v1","package":"m/p","function":"F"}]}}`
		there  = `{"finding":{"osv":"GO-2","fixed_version":"v2","trace":[{"module":"m","version":"v1"}]}}`
	)
	tests := map[string]struct {
		known, input string
		ok           bool
	}{
		"nothing found":      {"# none\n", scan, true},
		"no scan":            {"", "", false},
		"cut short":          {"", scan + `{"finding":`, false},
		"called, unlisted":   {"", scan + called, false},
		"called, listed":     {"GO-1 the function gets only constants\n", scan + scan + called, true},
		"required only":      {"", scan + there, true},
		"listed, gone":       {"GO-1 the function gets only constants\n", scan + there, false},
		"listed, no reason":  {"GO-1\n", scan + called, false},
		"a line of nonsense": {"hello there\n", scan, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			known := filepath.Join(t.TempDir(), "known.txt")
			if err := os.WriteFile(known, []byte(test.known), 0o600); err != nil {
				t.Fatal(err)
			}
			err := run(known, strings.NewReader(test.input), &strings.Builder{})
			if (err == nil) != test.ok {
				t.Errorf("run: %v, want ok=%v", err, test.ok)
			}
		})
	}
}
