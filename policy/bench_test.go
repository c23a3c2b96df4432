package policy_test

import (
	"testing"

	"gaol/policy"
)

// What each cold start pays.
func BenchmarkOneRequest(b *testing.B) {
	d, err := policy.ParseDocument("d", []byte("limits.memory = \"512MiB\"\nseccomp.deny = [\"mkdir\"]"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := policy.Builtin().Operator("o", policy.Document{}).Narrow("r", d).Policy
		if err := p.Validate(); err != nil {
			b.Fatal(err)
		}
		if _, err := p.SeccompProfile("amd64"); err != nil {
			b.Fatal(err)
		}
		_ = p.Hash()
	}
}

func BenchmarkNarrowSeccompAllow(b *testing.B) {
	for b.Loop() {
		policy.Builtin().Narrow("r", policy.Document{Seccomp: policy.SeccompPart{Allow: []string{"read"}}})
	}
}

func BenchmarkValidate(b *testing.B) {
	p := policy.Builtin().Policy
	for b.Loop() {
		if err := p.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}
