package erofs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrTooLarge says that the image would outgrow what the format can address.
var ErrTooLarge = errors.New("image too large for erofs")

const bufferSize = 1 << 20 // a multiple of BlockSize

// stream writes the image front to back in large pieces. Pieces of zeros
// become holes, so that a sparse file costs no disk.
type stream struct {
	out     *os.File
	buf     []byte
	flushed int64
}

var zeros [BlockSize]byte

func (s *stream) offset() int64 { return s.flushed + int64(len(s.buf)) }

// block is the number of the block at the current, aligned offset.
func (s *stream) block() (uint32, error) {
	n := s.offset() / BlockSize
	if n >= maxBlocks {
		return 0, ErrTooLarge
	}
	return uint32(n), nil //nolint:gosec // checked above
}

func (s *stream) flush() error {
	if !allZero(s.buf) {
		if _, err := s.out.WriteAt(s.buf, s.flushed); err != nil {
			return fmt.Errorf("write image: %w", err)
		}
	}
	s.flushed += int64(len(s.buf))
	s.buf = s.buf[:0]
	return nil
}

// write appends p.
func (s *stream) write(p []byte) error {
	for len(p) > 0 {
		if len(s.buf) == cap(s.buf) {
			if err := s.flush(); err != nil {
				return err
			}
		}
		n := copy(s.buf[len(s.buf):cap(s.buf)], p)
		s.buf = s.buf[:len(s.buf)+n]
		p = p[n:]
	}
	return nil
}

// readFrom appends all of r, reading straight into the buffer.
func (s *stream) readFrom(r io.Reader) (int64, error) {
	var total int64
	for empty := 0; empty < 100; {
		if len(s.buf) == cap(s.buf) {
			if err := s.flush(); err != nil {
				return total, err
			}
		}
		n, err := r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		total += int64(n)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, fmt.Errorf("read content: %w", err)
		}
		if n > 0 {
			empty = 0
		} else {
			empty++
		}
	}
	return total, fmt.Errorf("read content: %w", io.ErrNoProgress)
}

// pad fills with zeros up to the next block.
func (s *stream) pad() error {
	if rest := s.offset() % BlockSize; rest != 0 {
		return s.write(zeros[rest:])
	}
	return nil
}

func allZero(p []byte) bool {
	for len(p) > BlockSize {
		if !bytes.Equal(p[:BlockSize], zeros[:]) {
			return false
		}
		p = p[BlockSize:]
	}
	return bytes.Equal(p, zeros[:len(p)])
}
