package policy

import (
	"slices"
	"strings"
)

// anything is the allow list entry that allows everything.
const anything = "*"

// allowed intersects allow lists in which "*" stands for everything.
func (l *layer) allowed(field string, have *[]string, asked []string) {
	if asked == nil {
		return
	}
	want := allowList(asked)
	next := want
	if !l.replaces && !slices.Contains(*have, anything) {
		next = intersect(*have, want)
		l.clampList(field, subtract(want, *have), *have)
	}
	l.set(field, have, next)
}

// denied unites deny lists.
func (l *layer) denied(field string, have *[]string, asked []string) {
	if asked == nil {
		return
	}
	next := sorted(asked)
	if !l.replaces {
		next = sorted(append(next, *have...))
	}
	before, source := *have, l.out.Source[field]
	l.set(field, have, next)
	if !l.replaces && len(before) > 0 && len(next) > len(before) {
		l.out.Source[field] = source + " + " + l.name
	}
}

// seccompAllow intersects with what the profile allows to begin with, whoever
// asks. Nil stands for all of that.
func (l *layer) seccompAllow(have *[]string, asked []string) {
	const field = "seccomp.allow"
	if asked == nil {
		return
	}
	top := *have
	if top == nil || l.replaces {
		top = allowedAnywhere()
	}
	want := sorted(asked)
	l.clampList(field, subtract(want, top), top)
	l.set(field, have, intersect(top, want))
}

// roots keeps what lies beneath a directory of both lists.
func (l *layer) roots(field string, have *[]string, asked []string) {
	if asked == nil {
		return
	}
	next := outermost(asked)
	if !l.replaces {
		want := next
		next = beneathBoth(*have, want)
		l.clampList(field, subtract(want, next), *have)
	}
	l.set(field, have, next)
}

// set stores a list and names its source, if the layer changed it.
func (l *layer) set(field string, have *[]string, next []string) {
	if l.replaces || *have == nil || !slices.Equal(*have, next) {
		*have = next
		l.out.Source[field] = l.name
	}
}

// sorted is a fresh copy in order, without doubles, never nil.
func sorted(list []string) []string {
	out := append([]string{}, list...)
	slices.Sort(out)
	return slices.Compact(out)
}

// allowList is sorted; whatever stands beside "*" adds nothing to it.
func allowList(list []string) []string {
	if slices.Contains(list, anything) {
		return []string{anything}
	}
	return sorted(list)
}

// intersect keeps the entries of b that the sorted list a has. "*" in b stands
// for all of a.
func intersect(a, b []string) []string {
	if slices.Contains(b, anything) {
		return sorted(a)
	}
	return keep(b, func(s string) bool { return has(a, s) })
}

// subtract keeps the entries of a that the sorted list b lacks.
func subtract(a, b []string) []string {
	return keep(a, func(s string) bool { return !has(b, s) })
}

func has(sorted []string, s string) bool {
	_, found := slices.BinarySearch(sorted, s)
	return found
}

func keep(list []string, want func(string) bool) []string {
	return sorted(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !want(s) }))
}

// beneathBoth is the meet of two sets of directory trees.
func beneathBoth(a, b []string) []string {
	a, b = sorted(a), sorted(b)
	inner := keep(a, func(dir string) bool { return has(b, dir) || beneathAny(dir, b) })
	outer := keep(b, func(dir string) bool { return beneathAny(dir, a) })
	return outermost(slices.Concat(inner, outer))
}

// outermost drops each directory that lies beneath another of the list.
func outermost(list []string) []string {
	all := sorted(list)
	return keep(all, func(dir string) bool { return !beneathAny(dir, all) })
}

// beneathAny reports that a clean absolute path lies below one of the sorted
// directories, not counting itself.
func beneathAny(dir string, dirs []string) bool {
	for i := strings.LastIndexByte(dir, '/'); i >= 0 && dir != "/"; i = strings.LastIndexByte(dir, '/') {
		if dir = dir[:i]; dir == "" {
			dir = "/"
		}
		if has(dirs, dir) {
			return true
		}
	}
	return false
}
