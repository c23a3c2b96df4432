package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	const (
		pass = `{"Action":"pass","Package":"p","Test":"TestA"}`
		fail = `{"Action":"fail","Package":"p","Test":"TestB"}`
		died = `{"Action":"fail","Package":"q"}`
		skip = `{"Action":"skip","Package":"p","Test":"TestC"}`
		why  = `{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:7: needs root to mount\n"}`
		vain = `{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:7: no gVisor here\n"}`
		line = `{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`
	)
	tests := map[string]struct {
		lines  []string
		strict bool
		last   string
		ok     bool
	}{
		"all pass":               {[]string{pass, line}, true, "1 passed, 0 failed, 0 skipped", true},
		"nothing ran":            {[]string{"some text"}, false, "0 passed, 0 failed, 0 skipped", false},
		"a test fails":           {[]string{pass, fail, `{"Action":"fail","Package":"p"}`}, false, "1 passed, 1 failed, 0 skipped", false},
		"two packages die":       {[]string{pass, died, `{"Action":"fail","Package":"r"}`}, false, "1 passed, 2 failed, 0 skipped", false},
		"a listed skip":          {[]string{pass, why, skip}, true, "1 passed, 0 failed, 1 skipped", true},
		"another skip":           {[]string{pass, vain, skip}, true, "1 passed, 0 failed, 1 skipped", false},
		"another skip, laptop":   {[]string{pass, vain, skip}, false, "1 passed, 0 failed, 1 skipped", true},
		"a skip without a word":  {[]string{pass, skip}, true, "1 passed, 0 failed, 1 skipped", false},
		"a package with no test": {[]string{pass, `{"Action":"skip","Package":"s"}`}, true, "1 passed, 0 failed, 0 skipped", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			tally := newTally(&out, []*regexp.Regexp{regexp.MustCompile(`^(?:needs root\b)`)})
			for _, line := range test.lines {
				tally.line([]byte(line + "\n"))
			}
			err := tally.verdict(test.strict)
			if (err == nil) != test.ok {
				t.Errorf("verdict: %v, want ok=%v", err, test.ok)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; last != test.last {
				t.Errorf("closing line %q, want %q", last, test.last)
			}
		})
	}
}
