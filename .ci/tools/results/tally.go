package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is one line of `go test -json`, as cmd/test2json documents it.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// test names one test of one package; an empty name is the package itself.
type test struct{ pkg, name string }

// tally counts the tests and keeps the output of each until its end is known.
type tally struct {
	out                     io.Writer
	allowed                 []*regexp.Regexp
	output                  map[test][]string
	passed, failed, skipped int
	failedIn                map[string]int // failed tests by package
	badSkips                []string
}

func newTally(out io.Writer, allowed []*regexp.Regexp) *tally {
	return &tally{out: out, allowed: allowed, output: map[test][]string{}, failedIn: map[string]int{}}
}

// line takes one line of input. What is no event (a compiler's message on
// standard error) is printed as it is.
func (t *tally) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		fmt.Fprintf(t.out, "%s", line)
		return
	}
	key := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		t.output[key] = append(t.output[key], e.Output)
		// The one line a package that `go test` itself would print.
		if e.Test == "" && isSummary(e.Output) {
			fmt.Fprint(t.out, e.Output)
		}
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "pass":
		if e.Test != "" {
			t.passed++
		}
		delete(t.output, key)
	case "fail":
		t.fail(key)
	case "skip":
		t.skip(key)
	}
}

func (t *tally) fail(key test) {
	// A package that fails without a failing test (a panic, a build error, a
	// timeout) counts as one failure.
	if key.name != "" || t.failedIn[key.pkg] == 0 {
		t.failed++
		t.failedIn[key.pkg]++
	}
	for _, line := range t.output[key] {
		if !isSummary(line) && !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(t.out, line)
		}
	}
	delete(t.output, key)
}

func (t *tally) skip(key test) {
	defer delete(t.output, key)
	if key.name == "" {
		return // a package without tests
	}
	t.skipped++
	reason := reasonOf(t.output[key])
	name := key.pkg + "." + key.name
	fmt.Fprintf(t.out, "skip\t%s: %s\n", name, reason)
	for _, allowed := range t.allowed {
		if allowed.MatchString(reason) {
			return
		}
	}
	t.badSkips = append(t.badSkips, fmt.Sprintf("%s (%q)", name, reason))
}

// verdict prints the closing line and says what is wrong with the run.
func (t *tally) verdict(strict bool) error {
	fmt.Fprintf(t.out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	switch {
	case t.failed > 0:
		return fmt.Errorf("%d tests failed", t.failed)
	case t.passed == 0:
		return fmt.Errorf("no test ran")
	case strict && len(t.badSkips) > 0:
		return fmt.Errorf("skipped for a reason that is not listed:\n\t%s", strings.Join(t.badSkips, "\n\t"))
	}
	return nil
}

// isSummary tells the one line that `go test` ends a package with.
func isSummary(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "?   \t")
}
