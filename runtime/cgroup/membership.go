package cgroup

import (
	"fmt"
	"path"
	"strings"
)

// membership is which group a task is in: by controller for v1, under "" for v2.
type membership map[string]string

// parseMembership reads the text of /proc/PID/cgroup, described in cgroups(7).
func parseMembership(text string) (membership, error) {
	in := membership{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 || !path.IsAbs(fields[2]) {
			return nil, fmt.Errorf("parse cgroup line %q: want id:controllers:path", line)
		}
		for _, controller := range strings.Split(fields[1], ",") {
			in[controller] = fields[2]
		}
	}
	return in, nil
}

// of returns the group of a hierarchy.
func (in membership) of(m mount) (string, bool) {
	if m.version == 2 {
		group, ok := in[""]
		return group, ok
	}
	for _, controller := range m.controllers {
		if group, ok := in[controller]; ok {
			return group, true
		}
	}
	return "", false
}

func readMembership(fs tree, file string) (membership, error) {
	text, err := fs.read(file)
	if err != nil {
		return nil, fmt.Errorf("read own groups: %w", err)
	}
	return parseMembership(text)
}
