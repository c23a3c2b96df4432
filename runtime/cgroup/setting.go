package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// setting is one value that one control file must hold.
type setting struct {
	file, value string
	// optional: a kernel may lack the file, and the limit stands without it.
	optional bool
	// key: the value stands behind this word in the file, and is only written
	// when it differs.
	key string
}

func settings(version int, controllers []string, l Limits) []setting {
	var all []setting
	add := func(controller string, some ...setting) {
		if slices.Contains(controllers, controller) {
			all = append(all, some...)
		}
	}
	if version == 2 {
		add("memory",
			setting{file: "memory.max", value: l.memory()},
			setting{file: "memory.swap.max", value: "0", optional: true},
			// Half a sandbox is worth nothing, and what is left of one lies
			// about the program's fate: the kernel ends all of it at once.
			setting{file: "memory.oom.group", value: "1", optional: true})
		add("cpu", setting{file: "cpu.max", value: fmt.Sprintf("%s %d", l.quota(), period)})
		add("pids", setting{file: "pids.max", value: l.tasks()})
		return all
	}
	add("memory",
		setting{file: "memory.limit_in_bytes", value: l.memory()},
		// memsw is memory plus swap and may not be below memory: it comes second.
		setting{file: "memory.memsw.limit_in_bytes", value: l.memory(), optional: true},
		setting{file: "memory.swappiness", value: "0", optional: true},
		// Inherited. With 1 a group at its limit hangs instead of dying.
		setting{file: "memory.oom_control", key: "oom_kill_disable", value: "0"})
	add("cpu",
		setting{file: "cpu.cfs_period_us", value: fmt.Sprint(period)},
		setting{file: "cpu.cfs_quota_us", value: l.quota()})
	add("pids", setting{file: "pids.max", value: l.tasks()})
	return all
}

// apply writes the value and makes sure that the kernel took it as it is.
func (s setting) apply(tree tree, dir string) error {
	file := path.Join(dir, s.file)
	if s.key != "" {
		if held, err := s.held(tree, file); err != nil || held == s.value {
			return err
		}
	}
	err := tree.write(file, s.value)
	if s.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	held, err := s.held(tree, file)
	if err == nil && held != s.value {
		err = fmt.Errorf("set %s to %q: %w: %q", file, s.value, ErrReadBack, held)
	}
	return err
}

func (s setting) held(tree tree, file string) (string, error) {
	text, err := tree.read(file)
	if err != nil || s.key == "" {
		return strings.TrimSpace(text), err
	}
	return keyed(text)[s.key], nil
}

// keyed reads lines of "word value", the form of most statistics. Lines of
// another form are passed over, since kernels add their own.
func keyed(text string) map[string]string {
	pairs := map[string]string{}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 {
			pairs[fields[0]] = fields[1]
		}
	}
	return pairs
}
