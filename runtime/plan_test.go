package runtime

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

func TestPlan(t *testing.T) {
	all := hostMeans{cgroups: []string{"memory", "cpus", "pids"}, cpus: 4}
	none := hostMeans{cpus: 4, why: "no cgroup here"}
	tests := map[string]struct {
		cpus     policy.CPUs
		allow    []string
		host     hostMeans
		memory   Means
		by       Means
		affinity int
		fails    []string
	}{
		"cgroup":                {cpus: 0.5, host: all, memory: ByCgroup, by: ByCgroup},
		"whole processors":      {cpus: 2, host: none, memory: ByWatchdog, by: ByAffinity, affinity: 2},
		"more than there are":   {cpus: 4.5, host: none, memory: ByWatchdog, by: ByAffinity, affinity: 4},
		"part of a processor":   {cpus: 0.5, host: none, fails: []string{"cpus"}},
		"the operator allows":   {cpus: 1.5, allow: []string{"cpus"}, host: none, memory: ByWatchdog, by: ByNone, affinity: 2},
		"allows something else": {cpus: 1.5, allow: []string{"memory"}, host: none, fails: []string{"cpus"}},
		"memory only": {
			cpus: 1, host: hostMeans{cgroups: []string{"memory"}, cpus: 4}, memory: ByCgroup, by: ByAffinity, affinity: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := policy.Builtin().Policy
			p.Limits.CPUs = test.cpus
			p.Enforcement.AllowUnenforced = test.allow
			got, err := newPlan(p, test.host)
			var cannot *CannotEnforceError
			if errors.As(err, &cannot) {
				if diff := cmp.Diff(test.fails, cannot.Limits); diff != "" {
					t.Errorf("unenforced limits (-want +got):\n%s", diff)
				}
				return
			}
			if err != nil || test.fails != nil {
				t.Fatalf("got error %v, want %v", err, test.fails)
			}
			if got.receipt["memory"] != test.memory || got.receipt["cpus"] != test.by || got.affinity != test.affinity {
				t.Errorf("memory by %s, cpus by %s on %d processors", got.receipt["memory"], got.receipt["cpus"], got.affinity)
			}
		})
	}
}

// Every limit of a policy has a line in the receipt.
func TestReceiptIsComplete(t *testing.T) {
	pl, err := newPlan(policy.Builtin().Policy, hostMeans{cpus: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range policy.LimitNames() {
		if _, ok := pl.receipt[name]; !ok {
			t.Errorf("the receipt says nothing of %s", name)
		}
	}
}
