package policy

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// MaxFileBytes bounds a policy or config file.
const MaxFileBytes = 1 << 20

// maxReported bounds the errors told at once about one file.
const maxReported = 10

// DecodeStrict reads TOML into the struct that into points to, by its toml
// tags; an embedded struct without a tag lends its fields. Keys match to the
// letter and an unknown one is an error. A type that reads text takes a string
// or a whole number. What the text does not mention stays as it was.
//
// If into has a method Validate() error, as whatever embeds a Document has, it
// is called at the end. Every error is an *Error with file, line and column;
// several are joined. After an error into is partly filled.
func DecodeStrict(name string, data []byte, into any) error {
	text := string(data)
	if offset, err := readable(data); err != nil {
		return place(name, text, offset, err)
	}
	keys, offset, err := scanKeys(text)
	if err != nil {
		return place(name, text, offset, err)
	}
	tree := map[string]any{}
	if _, err := toml.Decode(text, &tree); err != nil {
		return syntaxError(name, text, keys, err)
	}
	problems := assign(tree, into)
	if checked, ok := into.(interface{ Validate() error }); ok && len(problems) == 0 {
		problems = flatten(checked.Validate())
	}
	for _, p := range problems {
		p.File = name
		p.Line, p.Column = lineColumn(text, keys.find(p.Key))
	}
	return report(problems)
}

// readable refuses what no editor should have written.
func readable(data []byte) (offset int, err error) {
	switch {
	case len(data) > MaxFileBytes:
		return 0, fmt.Errorf("%w: larger than %d bytes", ErrSyntax, MaxFileBytes)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return 0, fmt.Errorf("%w: begins with a byte order mark: save the file as UTF-8 without BOM", ErrSyntax)
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return 0, fmt.Errorf("%w: is UTF-16: save the file as UTF-8 without BOM", ErrSyntax)
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i, fmt.Errorf("%w: holds a NUL byte", ErrSyntax)
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i, fmt.Errorf("%w: byte 0x%02x is not UTF-8", ErrSyntax, data[i])
		}
		i += size
	}
	return 0, nil
}

func place(name, text string, offset int, err error) *Error {
	line, column := lineColumn(text, offset)
	return &Error{File: name, Line: line, Column: column, Err: err}
}

// lineColumn counts lines and characters from 1. The TOML library's offsets
// can lie outside the text.
func lineColumn(text string, offset int) (line, column int) {
	before := text[:max(0, min(offset, len(text)))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// syntaxError translates the TOML library's errors, whose position may be
// missing or be two different places; then the line counts.
func syntaxError(name, text string, keys keyOffsets, err error) error {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return place(name, text, 0, fmt.Errorf("%w: %w", ErrSyntax, err))
	}
	out := place(name, text, parse.Position.Start, fmt.Errorf("%w: %s", ErrSyntax, parse.Message))
	switch {
	case parse.Position.Line < 1:
		out.Line, out.Column = lineColumn(text, keys.find(parse.LastKey))
	case parse.Position.Line != out.Line:
		out.Line, out.Column = parse.Position.Line, 1
	}
	return out
}

// flatten finds the *Error values in a tree of joined errors. Any other error
// becomes one about the whole file.
func flatten(err error) []*Error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	var found *Error
	if errors.As(err, &found) {
		return []*Error{found}
	}
	return []*Error{{Err: err}}
}

// report joins the errors in the order of the file.
func report(problems []*Error) error {
	slices.SortStableFunc(problems, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	var all []error
	for i, p := range problems {
		if i == maxReported {
			all = append(all, fmt.Errorf("and %d more", len(problems)-i))
			break
		}
		all = append(all, p)
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}
