package policy

import "time"

// Builtin is the policy of a host whose operator said nothing. config.toml in
// the repository's root documents each value; a test keeps the two equal.
func Builtin() Effective {
	e := Effective{
		Policy: Policy{
			Limits:      builtinLimits(),
			Seccomp:     Seccomp{Deny: []string{}},
			Env:         Env{Allow: []string{anything}},
			Files:       Files{Roots: []string{"/"}},
			Python:      Python{DenyImports: []string{}},
			Images:      Images{Allowed: []string{anything}},
			Enforcement: Enforcement{AllowUnenforced: []string{}},
		},
		Source: map[string]string{},
	}
	for _, field := range Fields() {
		e.Source[field] = "built-in"
	}
	return e
}

func builtinLimits() Limits {
	return Limits{
		Memory:         1 * GiB,
		CPUs:           2,
		PIDs:           128,
		Timeout:        Duration(60 * time.Second),
		Output:         1 * MiB,
		OutputTotal:    1 * GiB,
		OpenFiles:      1024,
		FileSize:       1 * GiB,
		Tmp:            256 * MiB,
		Shm:            64 * MiB,
		Workspace:      2 * GiB,
		WorkspaceFiles: 50000,
	}
}
