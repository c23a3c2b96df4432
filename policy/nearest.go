package policy

import (
	"fmt"
	"strings"
)

// suggest is a hint to append to an error about an unknown name, empty when
// nothing known is near.
func suggest(name string, known []string) string {
	if best, ok := nearest(name, known); ok {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ""
}

// nearest finds the known name with the fewest edits, at most a third of the
// name's length and no less than one.
func nearest(name string, known []string) (string, bool) {
	if len(name) > 64 {
		return "", false
	}
	most := max(1, min(3, len(name)/3))
	best, found := "", false
	for _, candidate := range known {
		if d := edits(strings.ToLower(name), candidate); d <= most {
			best, most, found = candidate, d-1, true
		}
	}
	return best, found
}

// edits is the optimal string alignment distance: inserted, deleted, replaced
// bytes and swapped neighbours count one each.
func edits(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := previous[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			current[j] = min(replaced, previous[j]+1, current[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
