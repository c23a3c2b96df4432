package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

func TestParseDocument(t *testing.T) {
	text := `
# a comment
[limits]
memory = "512MB"   # docker's unit
timeout = 90
cpus = 2
pids = 40
[seccomp]
deny = ["mkdir", "mkdirat"]
[env]
allow = []
`
	got, err := policy.ParseDocument("p.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	memory, timeout, cpus, pids := 512*policy.MiB, policy.Duration(90*time.Second), policy.CPUs(2), 40
	want := policy.Document{
		Limits:  policy.LimitsPart{Memory: &memory, Timeout: &timeout, CPUs: &cpus, PIDs: &pids},
		Seccomp: policy.SeccompPart{Deny: []string{"mkdir", "mkdirat"}},
		Env:     policy.EnvPart{Allow: []string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseDocumentOfNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment", "[limits]\n[seccomp]"} {
		got, err := policy.ParseDocument("p.toml", []byte(text))
		if diff := cmp.Diff(policy.Document{}, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

// CASES.md G2, ATTACKS.md E4: each spelling is refused at its place.
func TestParseDocumentRefuses(t *testing.T) {
	tests := []struct {
		name, text   string
		class        error
		line, column int
	}{
		{"typo", "[limits]\nmemroy = \"1MiB\"", policy.ErrUnknownKey, 2, 1},
		{"typo at top level", "memroy = \"1MiB\"", policy.ErrUnknownKey, 1, 1},
		{"other case", "[limits]\nMemory = \"512MiB\"", policy.ErrUnknownKey, 2, 1},
		{"other case beside the right one", "[limits]\npids = 9\nPIDs = 900", policy.ErrUnknownKey, 3, 1},
		{"dotted", "limits.timeout = 3\n limits . pidz = 3", policy.ErrUnknownKey, 2, 11},
		{"inline", "limits = { pids = 9,  pidz = 3 }", policy.ErrUnknownKey, 1, 23},
		{"unknown table", "[limit]\nmemory = 1", policy.ErrUnknownKey, 1, 2},
		{"homoglyph, bare", "[limits]\nmem\u043ery = \"1GiB\"", policy.ErrSyntax, 2, 4},
		{"homoglyph, quoted", "[limits]\n\"mem\u043ery\" = \"1GiB\"", policy.ErrUnknownKey, 2, 1},
		{"column in characters", "[\"\u00e4\u00f6\"]\n", policy.ErrUnknownKey, 1, 2},
		{"bad unit", "[limits]\nmemory = \"1 Gigabyte\"", policy.ErrValue, 2, 1},
		{"zero", "[limits]\nmemory = 0", policy.ErrValue, 2, 1},
		{"negative", "[limits]\nmemory = -1", policy.ErrValue, 2, 1},
		{"negative text", "[limits]\nmemory = \"-1\"", policy.ErrValue, 2, 1},
		{"too small", "[limits]\nmemory = \"1MiB\"", policy.ErrValue, 2, 1},
		{"no pids", "[limits]\n  pids = 0", policy.ErrValue, 2, 3},
		{"negative pids", "[limits]\npids = -1", policy.ErrValue, 2, 1},
		{"pids beyond int64", "[limits]\npids = 9223372036854775808", policy.ErrSyntax, 2, 8},
		{"half a process", "[limits]\npids = 1.5", policy.ErrValue, 2, 1},
		{"float out of range", "[limits]\ncpus = 1e400", policy.ErrSyntax, 2, 8},
		{"infinite", "[limits]\ncpus = inf", policy.ErrValue, 2, 1},
		{"not a number", "[limits]\ncpus = nan", policy.ErrValue, 2, 1},
		{"zero cpus", "[limits]\ncpus = 0", policy.ErrValue, 2, 1},
		{"fine cpus", "[limits]\ncpus = 0.125", policy.ErrValue, 2, 1},
		{"zero time", "[limits]\ntimeout = 0", policy.ErrValue, 2, 1},
		{"fraction of a second", "[limits]\ntimeout = 1.5", policy.ErrValue, 2, 1},
		{"boolean", "[limits]\nmemory = true", policy.ErrValue, 2, 1},
		{"date", "[limits]\nmemory = 2001-01-01", policy.ErrValue, 2, 1},
		{"null", "[limits]\nmemory = null", policy.ErrSyntax, 2, 10},
		{"empty string", "[limits]\nmemory = \"\"", policy.ErrValue, 2, 1},
		{"list for a size", "[limits]\nmemory = [1]", policy.ErrValue, 2, 1},
		{"number for a table", "limits = 5", policy.ErrValue, 1, 1},
		{"list of tables", "[[limits]]\nmemory = \"1GiB\"", policy.ErrValue, 1, 3},
		{"string for a list", "[seccomp]\ndeny = \"ptrace\"", policy.ErrValue, 2, 1},
		{"number in a list", "[seccomp]\ndeny = [\"ptrace\", 5]", policy.ErrValue, 2, 1},
		{"unknown system call", "[seccomp]\nallow = [\"read\", \"mkdri\"]", policy.ErrUnknownSyscall, 2, 1},
		{"relative root", "[files]\nroots = [\"home\"]", policy.ErrValue, 2, 1},
		{"root with dots", "[files]\nroots = [\"/home/..\"]", policy.ErrValue, 2, 1},
		{"root with NUL", "[files]\nroots = [\"/a\\u0000b\"]", policy.ErrValue, 2, 1},
		{"variable with equals", "[env]\nallow = [\"A=B\"]", policy.ErrValue, 2, 1},
		{"module with slash", "[python]\ndeny_imports = [\"os/path\"]", policy.ErrValue, 2, 1},
		{"image with blank", "[images]\nallowed = [\"a b\"]", policy.ErrValue, 2, 1},
		{"unknown limit", "[enforcement]\nallow_unenforced = [\"memroy\"]", policy.ErrValue, 2, 1},
		{"same key twice", "[limits]\npids = 9\npids = 9", policy.ErrSyntax, 3, 1},
		{"same table twice", "[limits]\n[limits]", policy.ErrSyntax, 2, 2},
		{"byte order mark", "\ufeff[limits]", policy.ErrSyntax, 1, 1},
		{"UTF-16", "\xff\xfe[\x00", policy.ErrSyntax, 1, 1},
		{"NUL", "[limits]\n\x00", policy.ErrSyntax, 2, 1},
		{"not UTF-8", "# \xe4\n", policy.ErrSyntax, 1, 3},
		{"JSON", "{\"limits\":{}}", policy.ErrSyntax, 1, 1},
		{"YAML", "limits:\n  pids: 3", policy.ErrSyntax, 1, 7},
		{"trailing braces", "[limits]\npids = 9 {}", policy.ErrSyntax, 2, 9},
		{"too large", strings.Repeat("#\n", policy.MaxFileBytes), policy.ErrSyntax, 1, 1},
		{"deep lists", "x = " + strings.Repeat("[", 100_000), policy.ErrSyntax, 1, 22},
		{"deep tables", "x = " + strings.Repeat("{a=", 100_000), policy.ErrSyntax, 1, 56},
		{"deep keys", strings.Repeat("a.", 100_000) + "a = 1", policy.ErrSyntax, 1, 33},
		{"long key", strings.Repeat("a", 300) + " = 1", policy.ErrSyntax, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := policy.ParseDocument("dir/p.toml", []byte(tt.text))
			if !errors.Is(err, tt.class) {
				t.Fatalf("got %v, want class %v", err, tt.class)
			}
			var at *policy.Error
			if !errors.As(err, &at) || at.File != "dir/p.toml" {
				t.Fatalf("no position in %v", err)
			}
			if at.Line != tt.line || at.Column != tt.column {
				t.Errorf("at %d:%d, want %d:%d: %v", at.Line, at.Column, tt.line, tt.column, err)
			}
			if diff := cmp.Diff(policy.Document{}, got); diff != "" {
				t.Errorf("half a document came back: %s", diff)
			}
		})
	}
}

func TestParseDocumentReportsAll(t *testing.T) {
	_, err := policy.ParseDocument("p", []byte("[limits]\npidz = 1\nmemory = 0\n[limit]\n"))
	var lines []int
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var at *policy.Error
		if errors.As(e, &at) {
			lines = append(lines, at.Line)
		}
	}
	if diff := cmp.Diff([]int{2, 3, 4}, lines); diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}
