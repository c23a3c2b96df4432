package policy_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

// config stands for cmd's configuration: its own keys beside ours.
type config struct {
	Image string `toml:"image"`
	Runsc string `toml:"runsc"`
	Host  struct {
		CgroupParent string `toml:"cgroup_parent"`
		IDs          string `toml:"ids"`
		Data         string `toml:"data"`
		State        string `toml:"state"`
	} `toml:"host"`
	policy.Document
}

func readConfig(t *testing.T) (string, config) {
	t.Helper()
	data, err := os.ReadFile("../config.toml")
	if err != nil {
		t.Fatal(err)
	}
	var c config
	if err := policy.DecodeStrict("config.toml", data, &c); err != nil {
		t.Fatal(err)
	}
	return string(data), c
}

// The documented default is the built-in one.
func TestConfigIsTheBuiltinPolicy(t *testing.T) {
	_, c := readConfig(t)
	got := policy.Builtin().Operator("config.toml", c.Document)
	if diff := cmp.Diff(policy.Builtin().Policy, got.Policy); diff != "" {
		t.Error(diff)
	}
	if len(got.Clamps) > 0 {
		t.Error(got.Clamps)
	}
}

// Every key is there, with a comment right above it. seccomp.allow, whose
// default is to be absent, is there as a comment.
func TestConfigShowsEveryKey(t *testing.T) {
	text, c := readConfig(t)
	for table, part := range reflect.ValueOf(c.Document).Fields() {
		for field, v := range part.Fields() {
			name := table.Tag.Get("toml") + "." + field.Tag.Get("toml")
			if v.IsNil() && name != "seccomp.allow" {
				t.Errorf("%s is not set", name)
			}
		}
	}
	previous := ""
	key := regexp.MustCompile(`^(# )?[a-z_]+ = `)
	for line := range strings.Lines(text) {
		if key.MatchString(line) && !strings.HasPrefix(previous, "# ") {
			t.Errorf("no comment above %q", line)
		}
		previous = line
	}
	if !strings.Contains(text, "\n# allow = [") {
		t.Error("seccomp.allow is not shown")
	}
}

func TestDecodeStrictIntoLargerStruct(t *testing.T) {
	var c config
	err := policy.DecodeStrict("c", []byte("image = \"x\"\n[host]\nids = \"1-2\"\n[limits]\npids = 7\n"), &c)
	if err != nil || c.Image != "x" || c.Host.IDs != "1-2" || c.Limits.PIDs == nil || *c.Limits.PIDs != 7 {
		t.Errorf("%+v %v", c, err)
	}
	for text, want := range map[string]string{
		"[host]\ncgroup_parents = \"\"": "cgroup_parent",
		"runcs = \"\"":                  "runsc",
		"[limits]\npids = 0":            "",
		"[host]\nids = 5":               "",
		"image = [\"a\"]":               "",
		"[Document]\n":                  "",
		"[Document.limits]\npids = 9":   "",
		"memory = \"1GiB\"":             "memory",
	} {
		c := config{}
		err := policy.DecodeStrict("c", []byte(text), &c)
		if err == nil {
			t.Errorf("%q passes", text)
		} else if want != "" && !strings.Contains(err.Error(), "did you mean \""+want+"\"") {
			t.Errorf("%q: no hint at %s: %v", text, want, err)
		}
	}
}

func TestDecodeStrictKeepsDefaults(t *testing.T) {
	c := config{Image: "python", Runsc: "r"}
	if err := policy.DecodeStrict("c", []byte("runsc = \"s\""), &c); err != nil || c.Image != "python" || c.Runsc != "s" {
		t.Errorf("%+v %v", c, err)
	}
}
