package images

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pruner decides which paths of a package tree an image leaves out.
type pruner struct{ prune, keep *regexp.Regexp }

func newPruner(prune, keep []string) (pruner, error) {
	p, err := compilePatterns(prune)
	if err != nil {
		return pruner{}, fmt.Errorf("prune: %w", err)
	}
	k, err := compilePatterns(keep)
	if err != nil {
		return pruner{}, fmt.Errorf("keep: %w", err)
	}
	return pruner{prune: p, keep: k}, nil
}

// pruner compiles what the recipe leaves out.
func (r Recipe) pruner() (pruner, error) {
	return newPruner(slices.Concat(r.Prune, r.Skip), r.Keep)
}

// drops tells whether the absolute path, or a directory above it, is pruned
// and nothing keeps it.
func (p pruner) drops(name string) bool {
	return p.prune != nil && p.prune.MatchString(name) &&
		(p.keep == nil || !p.keep.MatchString(name))
}

// compilePatterns joins patterns into one expression, nil if there is none.
// A linear-time expression, since a recipe may come from anyone.
func compilePatterns(patterns []string) (*regexp.Regexp, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	var alternatives []string
	for _, pattern := range patterns {
		if !path.IsAbs(pattern) || path.Clean(pattern) != pattern || pattern == "/" {
			return nil, fmt.Errorf("pattern %q: want a clean absolute path below /", pattern)
		}
		var expr strings.Builder
		for _, name := range strings.Split(pattern[1:], "/") {
			if name == "**" {
				expr.WriteString(`(/[^/]+)*`)
				continue
			}
			quoted := regexp.QuoteMeta(name)
			quoted = strings.ReplaceAll(quoted, `\*`, `[^/]*`)
			expr.WriteString("/" + strings.ReplaceAll(quoted, `\?`, `[^/]`))
		}
		alternatives = append(alternatives, expr.String())
	}
	re, err := regexp.Compile(`^(?s:` + strings.Join(alternatives, "|") + `)(/|$)`)
	if err != nil {
		return nil, fmt.Errorf("patterns: %w", err)
	}
	return re, nil
}
