package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// maxMarks is how many combining marks in a row a terminal gets to see.
const maxMarks = 4

// safeWriter passes text to a terminal with everything made visible that would
// steer it: control characters, bidirectional and invisible ones, bytes that
// are no text.
type safeWriter struct {
	w       io.Writer
	partial []byte // the beginning of a rune
	marks   int
}

func (s *safeWriter) Write(p []byte) (int, error) {
	data := append(s.partial, p...)
	s.partial = nil
	var out bytes.Buffer
	for len(data) > 0 {
		if !utf8.FullRune(data) {
			s.partial = bytes.Clone(data)
			break
		}
		r, size := utf8.DecodeRune(data)
		s.append(&out, r, data[:size])
		data = data[size:]
	}
	if _, err := s.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *safeWriter) append(out *bytes.Buffer, r rune, raw []byte) {
	if unicode.Is(unicode.M, r) {
		s.marks++
	} else {
		s.marks = 0
	}
	switch {
	case r == '\n' || r == '\t':
		out.Write(raw)
	case r == utf8.RuneError && len(raw) == 1, r < 0x80 && unicode.IsControl(r):
		fmt.Fprintf(out, `\x%02x`, raw[0])
	case !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r), s.marks > maxMarks:
		fmt.Fprintf(out, `\u%04x`, r)
	default:
		out.Write(raw)
	}
}

// flush shows what is left of a rune that never came to its end.
func (s *safeWriter) flush() error {
	for _, b := range s.partial {
		if _, err := fmt.Fprintf(s.w, `\x%02x`, b); err != nil {
			return err
		}
	}
	s.partial = nil
	return nil
}

// safeText is text from outside, fit for one message of ours.
func safeText(text string) string {
	var b strings.Builder
	s := &safeWriter{w: &b}
	_, _ = s.Write([]byte(text))
	_ = s.flush()
	return b.String()
}

// lineText is text from outside, fit for a part of one line of ours.
func lineText(text string) string { return strings.ReplaceAll(safeText(text), "\n", `\n`) }

// isTerminal tells whether what is written goes to a terminal.
func isTerminal(w io.Writer) bool {
	if s, ok := w.(*stream); ok {
		w = s.w
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
