package main

import (
	"fmt"

	"gaol/policy"
)

// limitFlags are the flags that set a limit, by the limit's key.
var limitFlags = map[string]string{
	"limits.memory":  "--memory",
	"limits.cpus":    "--cpus",
	"limits.pids":    "--pids-limit",
	"limits.timeout": "--timeout",
}

// clampNotes say what was asked in vain. The clamps before fromFlags are of
// files, whose sentence names the file.
func clampNotes(clamps []policy.Clamp, fromFlags int) []string {
	notes := make([]string, 0, len(clamps))
	for i, c := range clamps {
		flag, ok := limitFlags[c.Field]
		if i < fromFlags || !ok {
			notes = append(notes, c.String())
			continue
		}
		notes = append(notes, fmt.Sprintf("%s %s lowered to %s, the limit of %s (%s)", flag, c.Asked, c.Allowed, layerText(c.By), c.Field))
	}
	return notes
}

func layerText(layer string) string {
	if layer == "built-in" {
		return "the built-in policy"
	}
	return layer
}
