package images

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// zstdWindow bounds the memory that a frame may ask for. Compressors go past
// 8 MiB only when told to.
const zstdWindow = 32 << 20

// compression is how a stream is packed, told by its first bytes: media types
// in the wild are often wrong, and the digest of the unpacked layer decides.
type compression string

const (
	plain compression = ""
	gz    compression = "gzip"
	zst   compression = "zstd"
)

var magics = []struct {
	prefix []byte
	name   compression
	ok     bool
}{
	{[]byte{0x1f, 0x8b}, gz, true},
	{[]byte{0x28, 0xb5, 0x2f, 0xfd}, zst, true},
	{[]byte("BZh"), "bzip2", false},
	{[]byte{0xfd, '7', 'z', 'X', 'Z', 0}, "xz", false},
	{[]byte("PK\x03\x04"), "zip", false},
}

// detect names the compression of a stream that starts with head.
func detect(head []byte) (compression, error) {
	for _, m := range magics {
		if !bytes.HasPrefix(head, m.prefix) {
			continue
		}
		if !m.ok {
			return m.name, fmt.Errorf("%w: compressed with %s; gzip and zstd are supported", ErrInvalid, m.name)
		}
		return m.name, nil
	}
	return plain, nil
}

// budget is what is left of the decompressed bytes of one image.
type budget struct {
	what   string
	limits Limits
	used   int64
}

func (b *budget) take(n int) error {
	if b.used += int64(n); b.used > b.limits.Bytes {
		return fmt.Errorf("%w: %s is larger than %d bytes decompressed", ErrLimit, b.what, b.limits.Bytes)
	}
	return nil
}

// decompress unpacks r within the budget. Closing it releases the decoder,
// not r.
func decompress(ctx context.Context, r io.Reader, b *budget) (io.ReadCloser, error) {
	packed := &counter{r: r}
	buffered := bufio.NewReaderSize(packed, 64<<10)
	head, err := buffered.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	how, err := detect(head)
	if err != nil {
		return nil, err
	}
	s := &stream{ctx: ctx, budget: b, packed: packed, how: how, r: buffered, close: func() {}}
	switch how {
	case plain:
	case gz:
		if s.r, err = gzip.NewReader(buffered); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	case zst:
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, fmt.Errorf("read zstd: %w", err)
		}
		s.r, s.close = decoder, decoder.Close
	}
	return s, nil
}

// stream is decompressed data that stops at the budget's end, when it grows
// out of all proportion to what was read, and when ctx ends.
type stream struct {
	ctx    context.Context
	budget *budget
	packed *counter
	how    compression
	given  int64
	r      io.Reader
	close  func()
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	s.given += int64(n)
	if over := s.budget.take(n); over != nil {
		return 0, over
	}
	limits := s.budget.limits
	if s.how != plain && s.given > limits.RatioFloor && s.given/limits.Ratio > s.packed.n {
		return 0, fmt.Errorf("%w: %s expands more than %d times (%s bomb)", ErrLimit, s.budget.what, limits.Ratio, s.how)
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, s.translate(err)
}

// translate turns a decoder's complaint into ours.
func (s *stream) translate(err error) error {
	switch {
	case s.how == plain, s.packed.err != nil && errors.Is(err, s.packed.err):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("%w: zstd window is larger than %d bytes: %w", ErrLimit, zstdWindow, err)
	}
	return fmt.Errorf("%w: read %s: %w", ErrInvalid, s.how, err)
}

func (s *stream) Close() error {
	s.close()
	return nil
}

// counter counts what is read and keeps the error that reading ended with.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}
