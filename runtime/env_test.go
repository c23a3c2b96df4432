package runtime

import (
	"testing"

	"gaol/policy"
)

func TestCheckEnv(t *testing.T) {
	some := policy.Builtin().Policy
	some.Env.Allow = []string{"TZ", "A_1"}
	for _, test := range []struct {
		env []string
		ok  bool
	}{
		{nil, true},
		{[]string{"TZ=UTC", "A_1="}, true},
		{[]string{"LANG=C"}, false},
		{[]string{"TZ"}, false},
		{[]string{"=x"}, false},
		{[]string{"1A=x"}, false},
		{[]string{"T Z=x"}, false},
		{[]string{"TZ=a\x00b"}, false},
		{[]string{"TZ=" + string(make([]byte, maxEnv))}, false},
	} {
		if err := CheckEnv(some, test.env); (err == nil) != test.ok {
			t.Errorf("CheckEnv(%.40q) = %v, want ok %t", test.env, err, test.ok)
		}
	}
}
