package cgroup

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// Usage is what a group has used since it was made. A number that the kernel
// does not count is zero.
type Usage struct {
	// CPU is user and system time of all processes, those that ended too.
	CPU time.Duration
	// MemoryPeak is the most memory held at once, in bytes.
	MemoryPeak int64
	// OOMKills counts processes that the kernel killed for lack of memory.
	// It is the proof of an oom; exit code 137 alone is none.
	OOMKills uint64
	// TasksPeak is the most processes and threads at once (Linux 6.1 or later).
	TasksPeak int
	// TaskRefusals counts forks that met the wall of Limits.Tasks.
	TaskRefusals uint64
	// ThrottledPeriods counts windows of 100 ms in which the CPU quota ran out.
	ThrottledPeriods uint64
	// Throttled is how long processes waited for the next window.
	Throttled time.Duration
}

// Usage reads the counters. It works until Remove, also when no process is
// left in the group.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	var errs []error
	for i, b := range g.h.branches {
		for _, c := range counters(g.h.version, b.controllers) {
			n, err := c.count(g.h.fs, g.paths[i])
			if err != nil {
				errs = append(errs, err)
				continue
			}
			c.keep(&u, n)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return u, fmt.Errorf("read usage of %s: %w", g.name, err)
	}
	return u, nil
}

// counter is one number of one file: its only one, or the one behind a word.
type counter struct {
	controller, file, word string
	// needed: every kernel that we run on has it.
	needed bool
	keep   func(*Usage, int64)
}

func counters(version int, controllers []string) []counter {
	var some []counter
	for _, c := range map[int][]counter{1: splitCounters(), 2: unifiedCounters()}[version] {
		for _, have := range controllers {
			if c.controller == have || c.controller == "" {
				some = append(some, c)
				break
			}
		}
	}
	return some
}

func splitCounters() []counter {
	return []counter{
		{"cpuacct", "cpuacct.usage", "", true, func(u *Usage, n int64) { u.CPU = time.Duration(n) }},
		{"memory", "memory.max_usage_in_bytes", "", true, func(u *Usage, n int64) { u.MemoryPeak = n }},
		{"memory", "memory.oom_control", "oom_kill", true, func(u *Usage, n int64) { u.OOMKills = whole(n) }},
		{"pids", "pids.peak", "", false, func(u *Usage, n int64) { u.TasksPeak = int(n) }},
		{"pids", "pids.events", "max", false, func(u *Usage, n int64) { u.TaskRefusals = whole(n) }},
		{"cpu", "cpu.stat", "nr_throttled", true, func(u *Usage, n int64) { u.ThrottledPeriods = whole(n) }},
		{"cpu", "cpu.stat", "throttled_time", true, func(u *Usage, n int64) { u.Throttled = time.Duration(n) }},
	}
}

func unifiedCounters() []counter {
	return []counter{
		{"", "cpu.stat", "usage_usec", true, func(u *Usage, n int64) { u.CPU = micros(n) }},
		{"memory", "memory.peak", "", false, func(u *Usage, n int64) { u.MemoryPeak = n }},
		{"memory", "memory.events", "oom_kill", true, func(u *Usage, n int64) { u.OOMKills = whole(n) }},
		{"pids", "pids.peak", "", false, func(u *Usage, n int64) { u.TasksPeak = int(n) }},
		{"pids", "pids.events", "max", false, func(u *Usage, n int64) { u.TaskRefusals = whole(n) }},
		{"cpu", "cpu.stat", "nr_throttled", true, func(u *Usage, n int64) { u.ThrottledPeriods = whole(n) }},
		{"cpu", "cpu.stat", "throttled_usec", true, func(u *Usage, n int64) { u.Throttled = micros(n) }},
	}
}

// whole loses nothing: count refuses what is negative.
func whole(n int64) uint64 { return uint64(n) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (c counter) count(fs tree, dir string) (int64, error) {
	file := path.Join(dir, c.file)
	text, err := fs.read(file)
	if !c.needed && gone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	value := strings.TrimSpace(text)
	if c.word != "" {
		value = keyed(text)[c.word]
		if value == "" && !c.needed {
			return 0, nil
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	if err != nil {
		return 0, fmt.Errorf("read %s in %s: %w", c.word, file, err)
	}
	return n, nil
}
