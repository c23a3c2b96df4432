package layers_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// rawHeader is the header of a file "x" that tar.Writer would not write. change may alter
// it before the checksum is made.
func rawHeader(kind byte, size uint64, change func([]byte)) []byte {
	b := make([]byte, 512)
	copy(b, "x")
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	base256(b[124:136], size)
	copy(b[136:], "00000000000\x00")
	b[156] = kind
	copy(b[257:], "ustar  \x00")
	if kind == 'x' || kind == 'g' || kind == '0' {
		copy(b[257:], "ustar\x0000")
	}
	if change != nil {
		change(b)
	}
	seal(b)
	return b
}

// seal writes a header's checksum.
func seal(b []byte) {
	sum := 8 * int(' ')
	for n, c := range b[:512] {
		if n < 148 || n >= 156 {
			sum += int(c)
		}
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
}

// mended is a copy of the stream with right checksums, as far as its headers'
// sizes lead from one to the next.
func mended(stream []byte) []byte {
	stream = bytes.Clone(stream)
	for at := 0; at+512 <= len(stream); {
		b := stream[at : at+512]
		if at += 512; allZero(b) {
			continue
		}
		seal(b)
		size, err := strconv.ParseUint(strings.Trim(string(b[124:136]), " \x00"), 8, 30)
		if err == nil {
			at += int(size+511) / 512 * 512
		}
	}
	return stream
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

func base256(field []byte, value uint64) {
	clear(field)
	binary.BigEndian.PutUint64(field[len(field)-8:], value)
	field[0] |= 0x80
}

// paxRecords is an extended header of its own for the next entry.
func paxRecords(t testing.TB, records ...string) []byte {
	t.Helper()
	var body bytes.Buffer
	for _, r := range records {
		size := len(r) + 3
		for len(fmt.Sprintf("%d %s\n", size, r)) != size {
			size++
		}
		fmt.Fprintf(&body, "%d %s\n", size, r)
	}
	out := rawHeader('x', uint64(body.Len()), nil)
	out = append(out, body.Bytes()...)
	return append(out, make([]byte, (512-body.Len()%512)%512)...)
}

// endless reads as zeros without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type failing struct{ err error }

func (r failing) Read([]byte) (int, error) { return 0, r.err }

type stream struct {
	io.Reader
	closed error
}

func (s stream) Close() error { return s.closed }

func diskBytes(t testing.TB, f *os.File) int64 {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}
