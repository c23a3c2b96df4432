package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// Output is what a stream carried. When it was more than the policy keeps,
// Head and Tail are its first and last bytes: errors come last.
type Output struct {
	Head, Tail []byte
	Total      int64 // bytes the program wrote, as far as gaol read them
}

// Truncated tells whether bytes between Head and Tail are missing.
func (o Output) Truncated() bool { return o.Total > int64(len(o.Head)+len(o.Tail)) }

// Bytes joins Head and Tail, without a mark between them.
func (o Output) Bytes() []byte { return append(bytes.Clone(o.Head), o.Tail...) }

// UTF8 tells whether all that was kept is valid UTF-8. A rune cut by the cap
// does not count against it.
func (o Output) UTF8() bool {
	if !o.Truncated() {
		return utf8.Valid(o.Bytes())
	}
	return utf8.Valid(trimPartialEnd(o.Head)) && utf8.Valid(trimPartialStart(o.Tail))
}

// TextParts are Head and Tail without the halves of runes that the cap cut.
func (o Output) TextParts() (head, tail string) {
	return string(trimPartialEnd(o.Head)), string(trimPartialStart(o.Tail))
}

// trimPartialEnd drops the beginning of a rune that the end cuts off.
func trimPartialEnd(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// trimPartialStart drops the end of a rune that the start cuts off.
func trimPartialStart(b []byte) []byte {
	i := 0
	for i < utf8.UTFMax-1 && i < len(b) && !utf8.RuneStart(b[i]) {
		i++
	}
	return b[i:]
}

// capture reads one stream to its end in constant memory.
type capture struct {
	keep   int       // bytes kept, half of them head
	limit  int64     // bytes after which over is called, once
	over   func()    // the program wrote too much
	tee    io.Writer // sees the stream as it comes; nil for none
	hold   []byte    // a mark: what begins with it is kept from tee
	first  func()    // the first byte came
	out    Output
	ring   []byte // the tail, starting at next once it is full
	next   int
	held   []byte
	teeErr error
}

// maxHeld bounds what is kept back from tee, in bytes; no denial is that long.
const maxHeld = 8 << 10

// read consumes f until its end, or until it is told by a deadline that the
// program is gone and only strangers hold the pipe.
func (c *capture) read(f *os.File) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			c.add(buf[:n])
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			c.finish()
			return fmt.Errorf("read the program's output: %w", err)
		}
	}
	c.finish()
	return nil
}

func (c *capture) add(p []byte) {
	if c.out.Total == 0 && c.first != nil {
		c.first()
	}
	before := c.out.Total
	c.out.Total += int64(len(p))
	if before <= c.limit && c.out.Total > c.limit {
		c.over()
	}
	c.pass(p)
	if room := c.keep/2 - len(c.out.Head); room > 0 {
		n := min(room, len(p))
		c.out.Head = append(c.out.Head, p[:n]...)
		p = p[n:]
	}
	c.addTail(p)
}

// addTail keeps the last bytes in a ring that grows up to its size.
func (c *capture) addTail(p []byte) {
	size := c.keep - c.keep/2
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if room := size - len(c.ring); room > 0 {
		n := min(room, len(p))
		c.ring = append(c.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.ring[c.next:], p)
		c.next = (c.next + n) % size
		p = p[n:]
	}
}

// pass hands bytes to tee, unless they may be the guest's own message.
func (c *capture) pass(p []byte) {
	if c.tee == nil || c.teeErr != nil {
		return
	}
	if len(c.hold) > 0 {
		c.held = append(c.held, p...)
		n := min(len(c.hold), len(c.held))
		if bytes.Equal(c.held[:n], c.hold[:n]) && len(c.held) <= maxHeld {
			return
		}
		p, c.held, c.hold = c.held, nil, nil
	}
	// A reader of ours that went away must not stop the program.
	_, c.teeErr = c.tee.Write(p)
}

func (c *capture) finish() {
	if len(c.held) > 0 && len(c.held) < len(c.hold) {
		p := c.held
		c.held, c.hold = nil, nil
		c.pass(p)
	}
	c.out.Tail = append(bytes.Clone(c.ring[c.next:]), c.ring[:c.next]...)
}
