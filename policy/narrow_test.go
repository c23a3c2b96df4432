package policy_test

import (
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gaol/policy"
)

// noWider says for each field, in the plainest terms, that a grants nothing
// that b does not. It shares no code with the package.
var noWider = map[string]func(a, b policy.Policy) bool{
	"Limits.Memory":         func(a, b policy.Policy) bool { return a.Limits.Memory <= b.Limits.Memory },
	"Limits.CPUs":           func(a, b policy.Policy) bool { return a.Limits.CPUs <= b.Limits.CPUs },
	"Limits.PIDs":           func(a, b policy.Policy) bool { return a.Limits.PIDs <= b.Limits.PIDs },
	"Limits.Timeout":        func(a, b policy.Policy) bool { return a.Limits.Timeout <= b.Limits.Timeout },
	"Limits.Output":         func(a, b policy.Policy) bool { return a.Limits.Output <= b.Limits.Output },
	"Limits.OutputTotal":    func(a, b policy.Policy) bool { return a.Limits.OutputTotal <= b.Limits.OutputTotal },
	"Limits.OpenFiles":      func(a, b policy.Policy) bool { return a.Limits.OpenFiles <= b.Limits.OpenFiles },
	"Limits.FileSize":       func(a, b policy.Policy) bool { return a.Limits.FileSize <= b.Limits.FileSize },
	"Limits.Tmp":            func(a, b policy.Policy) bool { return a.Limits.Tmp <= b.Limits.Tmp },
	"Limits.Shm":            func(a, b policy.Policy) bool { return a.Limits.Shm <= b.Limits.Shm },
	"Limits.Workspace":      func(a, b policy.Policy) bool { return a.Limits.Workspace <= b.Limits.Workspace },
	"Limits.WorkspaceFiles": func(a, b policy.Policy) bool { return a.Limits.WorkspaceFiles <= b.Limits.WorkspaceFiles },
	"Seccomp.Allow": func(a, b policy.Policy) bool {
		return b.Seccomp.Allow == nil || a.Seccomp.Allow != nil && subset(a.Seccomp.Allow, b.Seccomp.Allow)
	},
	"Seccomp.Deny": func(a, b policy.Policy) bool { return subset(b.Seccomp.Deny, a.Seccomp.Deny) },
	"Env.Allow":    func(a, b policy.Policy) bool { return subsetOrAny(a.Env.Allow, b.Env.Allow) },
	"Files.Roots": func(a, b policy.Policy) bool {
		for _, dir := range a.Files.Roots {
			if !slices.ContainsFunc(b.Files.Roots, func(root string) bool {
				return root == "/" || strings.HasPrefix(dir+"/", root+"/")
			}) {
				return false
			}
		}
		return true
	},
	"Python.DenyImports": func(a, b policy.Policy) bool { return subset(b.Python.DenyImports, a.Python.DenyImports) },
	"Images.Allowed":     func(a, b policy.Policy) bool { return subsetOrAny(a.Images.Allowed, b.Images.Allowed) },
	"Enforcement.AllowUnenforced": func(a, b policy.Policy) bool {
		return subset(a.Enforcement.AllowUnenforced, b.Enforcement.AllowUnenforced)
	},
}

func subset(a, b []string) bool {
	for _, s := range a {
		if !slices.Contains(b, s) {
			return false
		}
	}
	return true
}

func subsetOrAny(a, b []string) bool { return slices.Contains(b, "*") || subset(a, b) }

// leaves lists "Table.Field" of a two-level struct.
func leaves(t reflect.Type) []string {
	var names []string
	for table := range t.Fields() {
		for field := range table.Type.Fields() {
			names = append(names, table.Name+"."+field.Name)
		}
	}
	slices.Sort(names)
	return names
}

// A field added to Policy must be added to Document, to the comparer, and to
// Fields before these tests mean anything.
func TestEveryFieldIsRegistered(t *testing.T) {
	want := leaves(reflect.TypeFor[policy.Policy]())
	if diff := cmp.Diff(want, leaves(reflect.TypeFor[policy.Document]())); diff != "" {
		t.Error("Document:", diff)
	}
	var compared []string
	for name := range noWider {
		compared = append(compared, name)
	}
	slices.Sort(compared)
	if diff := cmp.Diff(want, compared); diff != "" {
		t.Error("comparer:", diff)
	}
	var tagged []string
	for table := range reflect.TypeFor[policy.Policy]().Fields() {
		for field := range table.Type.Fields() {
			tagged = append(tagged, table.Tag.Get("toml")+"."+field.Tag.Get("toml"))
			if field.Tag.Get("toml") != field.Tag.Get("json") {
				t.Errorf("%s: the names in TOML and JSON differ", field.Name)
			}
		}
	}
	if diff := cmp.Diff(tagged, policy.Fields()); diff != "" {
		t.Error("Fields:", diff)
	}
}

func widened(a, b policy.Policy) []string {
	var fields []string
	for name, ok := range noWider {
		if !ok(a, b) {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}

// documents draws documents whose values often meet, with every field set in
// some of them. A test below makes sure of that.
func documents() *rapid.Generator[policy.Document] {
	return rapid.Custom(func(t *rapid.T) policy.Document {
		size := func(what string) *policy.Size {
			return pointer(t, what, rapid.Map(small(), func(i int) policy.Size { return policy.Size(i) * policy.GiB / 4 }))
		}
		count := func(what string) *int { return pointer(t, what, small()) }
		names := func(what string, from ...string) []string {
			list := rapid.SliceOfN(rapid.SampledFrom(from), 0, 5)
			return rapid.OneOf(rapid.Just[[]string](nil), list).Draw(t, what)
		}
		return policy.Document{
			Limits: policy.LimitsPart{
				Memory: size("memory"), PIDs: count("pids"), Output: size("output"), OutputTotal: size("output_total"),
				CPUs:      pointer(t, "cpus", rapid.Map(small(), func(i int) policy.CPUs { return policy.CPUs(i) / 4 })),
				Timeout:   pointer(t, "timeout", rapid.Map(small(), func(i int) policy.Duration { return policy.Duration(i) * 1e10 })),
				OpenFiles: count("open_files"), FileSize: size("file_size"), Tmp: size("tmp"), Shm: size("shm"),
				Workspace: size("workspace"), WorkspaceFiles: count("workspace_files"),
			},
			Seccomp: policy.SeccompPart{
				Allow: names("allow", "read", "write", "open", "clone", "mount", "nonsense"),
				Deny:  names("deny", "read", "write", "mkdir", "ptrace"),
			},
			Env:         policy.EnvPart{Allow: names("env", "A", "B", "C", "*")},
			Files:       policy.FilesPart{Roots: names("roots", "/", "/a", "/a/b", "/a/b/c", "/a/x", "/ab", "/a-b", "/z")},
			Python:      policy.PythonPart{DenyImports: names("imports", "os", "ctypes", "os.path")},
			Images:      policy.ImagesPart{Allowed: names("images", "python", "node", "*")},
			Enforcement: policy.EnforcementPart{AllowUnenforced: names("unenforced", "memory", "cpus", "pids")},
		}
	})
}

// small draws numbers around the built-in values, zero and negative included:
// a request made by code has seen no parser.
func small() *rapid.Generator[int] {
	return rapid.OneOf(rapid.IntRange(-2, 16), rapid.SampledFrom([]int{127, 128, 129, 1024, 49999, 60000}))
}

func pointer[T any](t *rapid.T, what string, values *rapid.Generator[T]) *T {
	if !rapid.Bool().Draw(t, what+" set") {
		return nil
	}
	v := values.Draw(t, what)
	return &v
}

func TestDocumentsSetsEveryField(t *testing.T) {
	set := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		d := reflect.ValueOf(documents().Draw(t, "document"))
		for table, part := range d.Fields() {
			for field, v := range part.Fields() {
				if !v.IsNil() {
					set[table.Name+"."+field.Name] = true
				}
			}
		}
	})
	for _, name := range leaves(reflect.TypeFor[policy.Document]()) {
		if !set[name] {
			t.Errorf("%s is never set", name)
		}
	}
}

// thoroughly raises rapid's number of cases from its default of 100.
// -rapid.checks=100000 takes three minutes.
func thoroughly(t *testing.T, cases string) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == "100" && !testing.Short() {
		if err := checks.Value.Set(cases); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := checks.Value.Set(before); err != nil {
				t.Error(err)
			}
		})
	}
}

// ATTACKS.md E1: merging is a meet.
func TestNarrowIsAMeet(t *testing.T) {
	thoroughly(t, "2000")
	rapid.Check(t, func(t *rapid.T) {
		operator := policy.Builtin().Operator("config.toml", documents().Draw(t, "operator"))
		p, q := documents().Draw(t, "p"), documents().Draw(t, "q")
		once := operator.Narrow("p", p)
		both := once.Narrow("q", q)

		if fields := widened(once.Policy, operator.Policy); len(fields) > 0 {
			t.Fatalf("p widens %v", fields)
		}
		if fields := widened(both.Policy, once.Policy); len(fields) > 0 {
			t.Fatalf("q widens %v", fields)
		}
		if fields := widened(once.Policy, policy.Builtin().Operator("p", p).Policy); unasked(fields, p) {
			t.Fatalf("p gets more than it asks for: %v", fields)
		}
		if diff := cmp.Diff(operator.Policy, operator.Narrow("nothing", policy.Document{}).Policy); diff != "" {
			t.Fatal("an empty document changes:", diff)
		}
		if diff := cmp.Diff(once.Policy, once.Narrow("p", p).Policy); diff != "" {
			t.Fatal("not idempotent:", diff)
		}
		if diff := cmp.Diff(both.Policy, operator.Narrow("q", q).Narrow("p", p).Policy); diff != "" {
			t.Fatal("depends on the order:", diff)
		}
		if again := operator.Narrow("q", q).Narrow("p", p); both.Policy.Hash() != again.Policy.Hash() {
			t.Fatal("equal policies, other hashes")
		}
	})
}

// unasked reports that a document sets one of the fields.
func unasked(fields []string, d policy.Document) bool {
	for _, name := range fields {
		table, field, _ := strings.Cut(name, ".")
		if !reflect.ValueOf(d).FieldByName(table).FieldByName(field).IsNil() {
			return true
		}
	}
	return false
}

// One more key in a document never grants more.
func TestMoreKeysNeverGrantMore(t *testing.T) {
	thoroughly(t, "2000")
	rapid.Check(t, func(t *rapid.T) {
		operator := policy.Builtin().Operator("config.toml", documents().Draw(t, "operator"))
		p, more := documents().Draw(t, "p"), documents().Draw(t, "more")
		fuller := p
		for table, part := range reflect.ValueOf(&fuller).Elem().Fields() {
			for field, v := range part.Fields() {
				if v.IsNil() {
					v.Set(reflect.ValueOf(more).FieldByName(table.Name).FieldByName(field.Name))
				}
			}
		}
		if fields := widened(operator.Narrow("p", fuller).Policy, operator.Narrow("p", p).Policy); len(fields) > 0 {
			t.Fatalf("more keys widen %v", fields)
		}
	})
}

// The comparer itself must be able to say no.
func TestComparerSeesEveryWidening(t *testing.T) {
	wide := policy.Builtin().Operator("o", mustParse(t, `
limits = { memory = "2GiB", cpus = 8, pids = 200, timeout = "2m", output = "2MiB", output_total = "2GiB", open_files = 2048, file_size = "2GiB", tmp = "1GiB", shm = "1GiB", workspace = "9GiB", workspace_files = 60000 }
enforcement.allow_unenforced = ["memory"]
`)).Policy
	narrow := policy.Builtin().Narrow("n", mustParse(t, `
seccomp = { allow = ["read"], deny = ["write"] }
env.allow = ["A"]
files.roots = ["/a"]
python.deny_imports = ["os"]
images.allowed = ["python"]
`)).Policy
	if diff := cmp.Diff(leaves(reflect.TypeFor[policy.Policy]()), widened(wide, narrow)); diff != "" {
		t.Error(diff)
	}
}

func mustParse(t *testing.T, text string) policy.Document {
	t.Helper()
	d, err := policy.ParseDocument(t.Name(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// CASES.md G1: a partial table leaves the rest alone.
func TestNarrowMergesByKey(t *testing.T) {
	base := policy.Builtin().Operator("config.toml", mustParse(t, `
[limits]
memory = "256MiB"
pids = 64
timeout = 30
[seccomp]
deny = ["ptrace"]
`))
	got := base.Narrow("project.toml", mustParse(t, "limits.timeout = 60\nseccomp.deny = [\"mount\"]")).
		Narrow("empty.toml", mustParse(t, "seccomp.deny = []"))
	want := base.Policy
	want.Seccomp.Deny = []string{"mount", "ptrace"}
	if diff := cmp.Diff(want, got.Policy); diff != "" {
		t.Error(diff)
	}
	wantClamps := []policy.Clamp{{Field: "limits.timeout", Asked: "1m", Allowed: "30s", Layer: "project.toml", By: "config.toml"}}
	if diff := cmp.Diff(wantClamps, got.Clamps); diff != "" {
		t.Error(diff)
	}
	for field, want := range map[string]string{
		"limits.memory": "config.toml", "limits.timeout": "config.toml", "limits.cpus": "built-in",
		"seccomp.deny": "config.toml + project.toml", "env.allow": "built-in",
	} {
		if got := got.Source[field]; got != want {
			t.Errorf("%s comes from %q, want %q", field, got, want)
		}
	}
}

func TestNarrowClampsLists(t *testing.T) {
	base := policy.Builtin().Operator("c", mustParse(t, `
env.allow = ["A", "B"]
files.roots = ["/srv", "/home/me"]
images.allowed = ["python"]
enforcement.allow_unenforced = ["cpus"]
`))
	got := base.Narrow("r", mustParse(t, `
env.allow = ["B", "C"]
files.roots = ["/", "/home/me/x", "/etc"]
images.allowed = ["*"]
enforcement.allow_unenforced = ["memory"]
seccomp.allow = ["read", "mount"]
`))
	want := base.Policy
	want.Env.Allow = []string{"B"}
	want.Files.Roots = []string{"/home/me", "/srv"}
	want.Enforcement.AllowUnenforced = []string{}
	want.Seccomp.Allow = []string{"read"}
	if diff := cmp.Diff(want, got.Policy); diff != "" {
		t.Error(diff)
	}
	asked := map[string]string{}
	for _, c := range got.Clamps {
		asked[c.Field] = c.Asked
	}
	wantAsked := map[string]string{
		"env.allow": "C", "files.roots": "/", "images.allowed": "*",
		"enforcement.allow_unenforced": "memory", "seccomp.allow": "mount",
	}
	if diff := cmp.Diff(wantAsked, asked); diff != "" {
		t.Error(diff)
	}
}

// A value that was handed out or taken in can be changed by its owner without
// changing any policy.
func TestEffectiveSharesNothing(t *testing.T) {
	d := mustParse(t, "env.allow = [\"A\", \"B\"]\nseccomp = { allow = [\"read\"], deny = [\"write\"] }\nfiles.roots = [\"/a\"]\nlimits.pids = 9")
	first := policy.Builtin().Narrow("d", d)
	hash := first.Policy.Hash()
	d.Env.Allow[0], d.Seccomp.Allow[0], d.Seccomp.Deny[0], d.Files.Roots[0], *d.Limits.PIDs = "X", "X", "X", "/x", 5

	second := first.Narrow("nothing", policy.Document{})
	p := second.Policy
	for _, list := range [][]string{p.Env.Allow, p.Seccomp.Allow, p.Seccomp.Deny, p.Files.Roots, p.Images.Allowed} {
		list[0] = "changed"
	}
	second.Source["limits.pids"] = "changed"
	if first.Policy.Hash() != hash || first.Source["limits.pids"] != "d" {
		t.Errorf("the policy changed: %+v", first)
	}
	profile, err := policy.Builtin().Policy.SeccompProfile("amd64")
	if err != nil {
		t.Fatal(err)
	}
	for i := range profile.Syscalls {
		profile.Syscalls[i].Names[0] = "changed"
	}
	again, err := policy.Builtin().Policy.SeccompProfile("amd64")
	if err != nil || again.Syscalls[0].Names[0] == "changed" {
		t.Error("the profile changed", err)
	}
}
