package policy_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

func TestBuiltinIsValid(t *testing.T) {
	if err := policy.Builtin().Policy.Validate(); err != nil {
		t.Error(err)
	}
	source := policy.Builtin().Source
	for _, field := range policy.Fields() {
		if source[field] != "built-in" {
			t.Errorf("%s has source %q", field, source[field])
		}
	}
}

// keysOf lists the keys that a validation complains about.
func keysOf(err error) []string {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var keys []string
		for _, e := range joined.Unwrap() {
			keys = append(keys, keysOf(e)...)
		}
		return keys
	}
	var e *policy.Error
	if errors.As(err, &e) && errors.Is(err, policy.ErrValue) {
		return []string{e.Key}
	}
	return []string{err.Error()}
}

// No limit may be zero, negative or the largest number of its type.
func TestValidateRefusesExtremesOfEveryLimit(t *testing.T) {
	for field := range reflect.TypeFor[policy.Limits]().Fields() {
		key := "limits." + field.Tag.Get("toml")
		for _, extreme := range []string{"zero", "negative", "largest"} {
			p := policy.Builtin().Policy
			v := reflect.ValueOf(&p.Limits).Elem().FieldByIndex(field.Index)
			switch {
			case extreme == "zero":
				v.SetZero()
			case v.CanFloat():
				v.SetFloat(map[string]float64{"negative": -1, "largest": math.MaxFloat64}[extreme])
			default:
				v.SetInt(map[string]int64{"negative": -1, "largest": math.MaxInt64}[extreme])
			}
			if diff := cmp.Diff([]string{key}, keysOf(p.Validate())); diff != "" {
				t.Errorf("%s of %s: %s", extreme, key, diff)
			}
		}
	}
}

func TestValidateBounds(t *testing.T) {
	tests := []struct {
		name string
		set  func(*policy.Policy)
		want []string
	}{
		{"least memory", func(p *policy.Policy) { p.Limits.Memory = policy.MinMemory }, nil},
		{"less memory", func(p *policy.Policy) { p.Limits.Memory = policy.MinMemory - 1 }, []string{"limits.memory"}},
		{"most memory", func(p *policy.Policy) { p.Limits.Memory = policy.MaxMemory }, nil},
		{"more memory", func(p *policy.Policy) { p.Limits.Memory = policy.MaxMemory + 1 }, []string{"limits.memory"}},
		{"one process", func(p *policy.Policy) { p.Limits.PIDs = 1 }, nil},
		{"most processes", func(p *policy.Policy) { p.Limits.PIDs = policy.MaxPIDs }, nil},
		{"more processes", func(p *policy.Policy) { p.Limits.PIDs = policy.MaxPIDs + 1 }, []string{"limits.pids"}},
		{"steps of CPU", func(p *policy.Policy) { p.Limits.CPUs = 0.07 }, nil},
		{"most CPUs", func(p *policy.Policy) { p.Limits.CPUs = 1024 }, nil},
		{"finer CPU", func(p *policy.Policy) { p.Limits.CPUs = 0.075 }, []string{"limits.cpus"}},
		{"NaN", func(p *policy.Policy) { p.Limits.CPUs = policy.CPUs(math.NaN()) }, []string{"limits.cpus"}},
		{"infinity", func(p *policy.Policy) { p.Limits.CPUs = policy.CPUs(math.Inf(1)) }, []string{"limits.cpus"}},
		{"few files", func(p *policy.Policy) { p.Limits.OpenFiles = policy.MinOpenFiles - 1 }, []string{"limits.open_files"}},
		{"unknown call", func(p *policy.Policy) { p.Seccomp.Deny = []string{"mkdri"} }, []string{"seccomp.deny"}},
		{"call of another architecture", func(p *policy.Policy) { p.Seccomp.Deny = []string{"chown32", "open", "mkdir"} }, nil},
		{"variables", func(p *policy.Policy) { p.Env.Allow = []string{"_A1", "*"} }, nil},
		{"number as variable", func(p *policy.Policy) { p.Env.Allow = []string{"1A"} }, []string{"env.allow"}},
		{"newline in variable", func(p *policy.Policy) { p.Env.Allow = []string{"A\nB"} }, []string{"env.allow"}},
		{"foreign letter in variable", func(p *policy.Policy) { p.Env.Allow = []string{"\u00c4"} }, []string{"env.allow"}},
		{"no root", func(p *policy.Policy) { p.Files.Roots = []string{} }, nil},
		{"slash at the end", func(p *policy.Policy) { p.Files.Roots = []string{"/a/"} }, []string{"files.roots"}},
		{"modules", func(p *policy.Policy) { p.Python.DenyImports = []string{"os.path", "ctypes"} }, nil},
		{"empty module", func(p *policy.Policy) { p.Python.DenyImports = []string{"os..path"} }, []string{"python.deny_imports"}},
		{"empty image", func(p *policy.Policy) { p.Images.Allowed = []string{""} }, []string{"images.allowed"}},
		{"many", func(p *policy.Policy) { p.Images.Allowed = make([]string, policy.MaxEntries+1) }, []string{"images.allowed"}},
		{"two at once", func(p *policy.Policy) { p.Limits.PIDs, p.Limits.Tmp = 0, 1 }, []string{"limits.pids", "limits.tmp"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := policy.Builtin().Policy
			tt.set(&p)
			if diff := cmp.Diff(tt.want, keysOf(p.Validate())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A request made by code has seen no parser: what it puts out of range is
// refused in the end, never taken for unlimited.
func TestValidateCatchesUncheckedRequests(t *testing.T) {
	nan, zero, minus := policy.CPUs(math.NaN()), policy.Size(0), -1
	d := policy.Document{Limits: policy.LimitsPart{CPUs: &nan, Memory: &zero, PIDs: &minus}}
	later := mustParse(t, "limits = { cpus = 1, memory = \"1GiB\", pids = 9 }")
	got := policy.Builtin().Narrow("request", d).Narrow("later", later).Policy.Validate()
	want := []string{"limits.memory", "limits.cpus", "limits.pids"}
	if diff := cmp.Diff(want, keysOf(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, keysOf(d.Validate())); diff != "" {
		t.Error(diff)
	}
}

// The hash is of the meaning: neither order nor doubles count, every field does.
func TestHash(t *testing.T) {
	base := policy.Builtin().Policy
	a, b := base, base
	a.Env.Allow, b.Env.Allow = []string{"A", "B", "A"}, []string{"B", "A"}
	if a.Hash() != b.Hash() {
		t.Error("the order of a list changes the hash")
	}
	keepNone := base
	keepNone.Seccomp.Allow = []string{}
	if keepNone.Hash() == base.Hash() {
		t.Error("keeping all calls and keeping none have one hash")
	}
	seen := map[string]string{base.Hash(): "built-in"}
	for table := range reflect.TypeFor[policy.Policy]().Fields() {
		for field := range table.Type.Fields() {
			p := base
			v := reflect.ValueOf(&p).Elem().FieldByIndex(table.Index).FieldByIndex(field.Index)
			switch {
			case v.Kind() == reflect.Slice:
				v.Set(reflect.ValueOf([]string{"changed"}))
			case v.CanFloat():
				v.SetFloat(0.5)
			default:
				v.SetInt(v.Int() + 1)
			}
			if other, ok := seen[p.Hash()]; ok {
				t.Errorf("%s.%s has the hash of %s", table.Name, field.Name, other)
			}
			seen[p.Hash()] = table.Name + "." + field.Name
		}
	}
}
