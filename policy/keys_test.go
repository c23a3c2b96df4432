package policy

import (
	"errors"
	"slices"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

// FuzzParseDocument holds the reader of keys against the TOML library's, and
// everything against panics and values out of range.
func FuzzParseDocument(f *testing.F) {
	for _, seed := range []string{
		"", "[limits]\nmemory = \"512MB\" # x\npids = 9\n", "limits = { pids = 9, cpus = 0.5 }",
		"limits . \"memory\" = '1GiB'\n[seccomp]\ndeny = [\"mkdir\", # a ]\n 'mount',\n]\n",
		"[files]\nroots = [\"\"\"/a\"\"\", '''/b''']", "a = \"\"\"x\"\"\"\"\"\nb = 1", "x = [[[{y = 1}]]]",
		"[[a]]\nb = 1\n[[a]]\nb = 2", "a.b.c.d = 1979-05-27T07:32:00Z", "[\"a.b\".c]\n\"d\\\"e\" = 1",
		"\x1f", "\"\\", "\ufeff", "memory = 1e400", "a = \"\\u00e9\"\r\nb = 2\r\n", "= 1", "[", "a = {", "a = \"", "[limits]\n\"\" = 1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := ParseDocument("p", data)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 {
				t.Fatalf("no position: %v", err)
			}
			return
		}
		if err := document.Validate(); err != nil {
			t.Fatalf("accepted, then refused: %v", err)
		}
		if err := Builtin().Narrow("p", document).Policy.Validate(); err != nil {
			t.Fatalf("narrows to an invalid policy: %v", err)
		}
	})
}

// FuzzKeys: wherever the TOML library accepts a text, both see the same keys.
// That is what the bounds on a file's shape rest on.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{
		"a = 1\n[b]\nc.d = [1, [2], {e = '}'}]\n", "x = '''\n[no]\n'''\ny = \"\"\"\\\"\"\"\" \n", "[[t]]\nk = \"#\" # c = 1\n[[t]]\nk2 = 2",
		"\"q\\u0041\" . 'r' = {\"s.t\" = 1,}", "a = [\n# ]\n 1,\n]\nb = -inf", "d = 2001-01-01 10:00:00\ne = 1",
		"s = ''''a''''\nu = '''''b'''''", "[ a . b ]\n[a.\"c d\"]\n", "a = { b = { c = 1 }, d = [ { e = 2 } ] }",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := readable([]byte(text)); err != nil {
			return
		}
		found, _, err := scanKeys(text)
		if err != nil {
			return // out of bounds: never reaches the library
		}
		var tree map[string]any
		meta, err := toml.Decode(text, &tree)
		if err != nil {
			return
		}
		want, got := []string{}, []string{}
		for _, key := range meta.Keys() {
			for i := range key {
				want = append(want, key[:i+1].String())
			}
		}
		for key := range found {
			got = append(got, key)
		}
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
		for key, offset := range found {
			if offset >= len(text) {
				t.Fatalf("%q: %s stands at %d", text, key, offset)
			}
		}
	})
}

// What a policy prints reads back as the same policy.
func TestPolicySurvivesTOML(t *testing.T) {
	text, err := toml.Marshal(Builtin().Policy)
	if err != nil {
		t.Fatal(err)
	}
	document, err := ParseDocument("p", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if diff := cmp.Diff(Builtin().Policy, Builtin().Narrow("p", document).Policy); diff != "" {
		t.Errorf("%s in\n%s", diff, text)
	}
	if clamps := Builtin().Narrow("p", document).Clamps; len(clamps) > 0 {
		t.Error(clamps)
	}
}

func TestKeysAreFoundWithTheirTables(t *testing.T) {
	keys, _, err := scanKeys("a.b = 1\n[c]\n d = { e = 1 }\n")
	if err != nil {
		t.Fatal(err)
	}
	want := keyOffsets{"a": 0, "a.b": 2, "c": 9, "c.d": 13, "c.d.e": 19}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
	if keys.find("c.d.unheard.of") != 13 || keys.find("unheard") != 0 || !slices.Equal([]int{keys.find("c.d")}, []int{13}) {
		t.Error("find does not fall back")
	}
}
