package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Bounds on the shape of a file, checked before the TOML library sees it: it
// recurses for each nested bracket and keeps the whole path of every key.
const (
	maxNesting   = 16
	maxKeyParts  = 16
	maxKeyLength = 256
)

// keyOffsets maps dotted keys to where they stand in the text, which the TOML
// library does not tell.
type keyOffsets map[string]int

// find falls back on the nearest enclosing key, then on the beginning.
func (k keyOffsets) find(key string) int {
	for {
		if offset, ok := k[key]; ok {
			return offset
		}
		i := strings.LastIndexByte(key, '.')
		if i < 0 {
			return 0
		}
		key = key[:i]
	}
}

// joinKey appends one part, quoted as TOML does where it must.
func joinKey(prefix, part string) string {
	quoted := toml.Key{part}.String()
	if prefix == "" {
		return quoted
	}
	return prefix + "." + quoted
}

// scanner walks over TOML text, looking only for keys. It takes the text for
// valid and gives up quietly where it is not: the TOML library will say why.
type scanner struct {
	text string
	pos  int
	keys keyOffsets
	err  error
}

// scanKeys finds every key. The error says at offset that the shape is out of
// bounds.
func scanKeys(text string) (keys keyOffsets, offset int, err error) {
	s := &scanner{text: text, keys: keyOffsets{}}
	s.document()
	return s.keys, s.pos, s.err
}

func (s *scanner) document() {
	table := ""
	for s.err == nil {
		s.skip(" \t\r\n")
		start := s.pos
		switch {
		case s.pos == len(s.text):
			return
		case s.accept('['):
			s.accept('[')
			table = s.key("")
			s.skip(" \t]")
		default:
			s.keyValue(table, 0)
		}
		if s.pos == start {
			return
		}
	}
}

func (s *scanner) keyValue(table string, depth int) {
	key := s.key(table)
	s.skip(" \t")
	if s.accept('=') {
		s.value(key, depth)
	}
}

// value passes over one value and records the keys of inline tables in it.
func (s *scanner) value(key string, depth int) {
	if depth > maxNesting {
		s.fail("nested more than %d deep", maxNesting)
	}
	s.skip(" \t")
	switch c := s.peek(); {
	case s.err != nil:
	case c == '"' || c == '\'':
		s.quoted()
	case c == '[':
		s.items(']', func() { s.value(key, depth+1) })
	case c == '{':
		s.items('}', func() { s.keyValue(key, depth+1) })
	default:
		if end := strings.IndexAny(s.text[s.pos:], ",]}#\r\n"); end >= 0 {
			s.pos += end
		} else {
			s.pos = len(s.text)
		}
	}
}

// items calls item for each element up to the closing bracket.
func (s *scanner) items(closing byte, item func()) {
	s.pos++
	for s.err == nil {
		s.skip(" \t\r\n,")
		start := s.pos
		if s.pos == len(s.text) || s.accept(closing) {
			return
		}
		if item(); s.pos == start {
			return
		}
	}
}

// key reads a dotted key and records it with the tables that it implies.
func (s *scanner) key(table string) string {
	for parts := 0; s.err == nil; parts++ {
		s.skip(" \t")
		start := s.pos
		name, ok := s.part()
		if !ok {
			break
		}
		if parts == maxKeyParts || len(name) > maxKeyLength {
			s.pos = start
			s.fail("key of more than %d parts or %d bytes", maxKeyParts, maxKeyLength)
			break
		}
		table = joinKey(table, name)
		if _, known := s.keys[table]; !known {
			s.keys[table] = start
		}
		s.skip(" \t")
		if !s.accept('.') {
			break
		}
	}
	return table
}

// part reads one bare or quoted part of a key.
func (s *scanner) part() (name string, ok bool) {
	if c := s.peek(); c == '"' || c == '\'' {
		start := s.pos
		s.quoted()
		raw := s.text[start:s.pos]
		if name, err := strconv.Unquote(raw); err == nil && c == '"' {
			return name, true
		}
		return strings.Trim(raw, string(c)), true
	}
	rest := s.text[s.pos:]
	end := strings.IndexAny(rest, " \t\r\n.=[]{}\"',#")
	if end < 0 {
		end = len(rest)
	}
	s.pos += end
	return rest[:end], end > 0
}

// quoted passes over a string of any of the four kinds.
func (s *scanner) quoted() {
	quote := s.text[s.pos : s.pos+1]
	closing := quote
	if strings.HasPrefix(s.text[s.pos:], strings.Repeat(quote, 3)) {
		closing = strings.Repeat(quote, 3)
	}
	for s.pos += len(closing); s.pos < len(s.text); s.pos++ {
		switch {
		case quote == `"` && s.text[s.pos] == '\\':
			s.pos++
		case strings.HasPrefix(s.text[s.pos:], closing):
			s.pos += len(closing)
			for extra := 0; len(closing) == 3 && extra < 2 && s.accept(quote[0]); extra++ {
				continue // up to two quotes may stand before the closing three
			}
			return
		case len(closing) == 1 && s.text[s.pos] == '\n':
			return
		}
	}
	s.pos = min(s.pos, len(s.text))
}

// skip passes over the given bytes and, where lines may end, over comments.
func (s *scanner) skip(set string) {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case strings.IndexByte(set, c) >= 0:
			s.pos++
		case c == '#' && strings.Contains(set, "\n"):
			end := strings.IndexByte(s.text[s.pos:], '\n')
			if end < 0 {
				s.pos = len(s.text)
				return
			}
			s.pos += end
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) accept(c byte) bool {
	if s.peek() != c || s.pos == len(s.text) {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s", ErrSyntax, fmt.Sprintf(format, args...))
	}
}
