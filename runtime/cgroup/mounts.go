package cgroup

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// mount is one mounted hierarchy.
type mount struct {
	point       string   // where it is mounted
	root        string   // the group that is visible at point
	version     int      // 1 or 2
	controllers []string // v1: those of this hierarchy, among mount options; v2 tells in cgroup.controllers
}

// dir is where the group named as in /proc/PID/cgroup is seen, if it is.
func (m mount) dir(group string) (string, bool) {
	rel, ok := beneath(group, m.root)
	return path.Join(m.point, rel), ok
}

// beneath returns what follows root in name, or false when name lies elsewhere.
func beneath(name, root string) (string, bool) {
	if root == "/" || name == root {
		return strings.TrimPrefix(name, root), path.IsAbs(name)
	}
	return strings.CutPrefix(name, root+"/")
}

// parseMounts returns the hierarchies in the text of a mountinfo file,
// described in proc_pid_mountinfo(5), which are at or below the directory top.
func parseMounts(text, top string) ([]mount, error) {
	var found []mount
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		fields := strings.Split(line, " ")
		dash := slices.Index(fields, "-")
		if dash < 6 || len(fields) < dash+4 {
			return nil, fmt.Errorf("parse mountinfo line %q: want fields, a dash, and three more", line)
		}
		m := mount{point: unescape(fields[4]), root: unescape(fields[3])}
		if _, ok := beneath(m.point, top); !ok {
			continue
		}
		switch fields[dash+1] {
		case "cgroup":
			m.version, m.controllers = 1, strings.Split(fields[dash+3], ",")
		case "cgroup2":
			m.version = 2
		}
		// A later mount at the same place hides the earlier one, whatever it is.
		found = slices.DeleteFunc(found, func(old mount) bool { return old.point == m.point })
		if m.version != 0 {
			found = append(found, m)
		}
	}
	return found, nil
}

// unescape undoes the kernel's \ooo for space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
