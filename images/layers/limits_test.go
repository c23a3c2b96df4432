package layers_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"gaol/images/layers"
)

// TestLimits checks each bound from both sides.
func TestLimits(t *testing.T) {
	deep := func(n int) string { return repeat("d/", n) + "x" }
	tests := []struct {
		name   string
		limits layers.Limits
		fits   [][]entry
		over   [][]entry
	}{
		{"entries", layers.Limits{Entries: 3 + made}, [][]entry{{f("a", ""), f("b", ""), f("c", "")}}, [][]entry{{f("a", ""), f("a", ""), f("a", ""), f("a", ""), f("a", "")}}},
		{"entries over layers", layers.Limits{Entries: 2 + made}, [][]entry{{f("a", "")}, {f("b", "")}}, [][]entry{{f("a", ""), f("b", "")}, {f("a", ""), f("b", "")}}},
		{"parents count as entries", layers.Limits{Entries: 3 + made}, [][]entry{{f("d/d/x", "")}}, [][]entry{{f(deep(9), "")}}},
		{"content", layers.Limits{Bytes: 10_000}, [][]entry{{f("a", repeat("x", 4000))}}, [][]entry{{f("a", repeat("x", 10_001))}}},
		{"stream over layers", layers.Limits{Bytes: 10_000}, [][]entry{{f("a", "")}, {f("b", "")}}, [][]entry{{f("a", repeat("x", 4000))}, {f("a", repeat("x", 4000))}}},
		{"names", layers.Limits{Names: 100}, [][]entry{{f("a", "")}}, [][]entry{{f(repeat("n", 101), "")}}},
		{"targets count as names", layers.Limits{Names: 100}, [][]entry{{s("a", repeat("t", 30))}}, [][]entry{{s("a", repeat("t", 101))}}},
		{"layers", layers.Limits{Layers: 2}, [][]entry{{}, {}}, [][]entry{{}, {}, {}}},
		{"depth", layers.Limits{Depth: 5}, [][]entry{{f(deep(4), "")}}, [][]entry{{f(deep(5), "")}}},
		{"depth through a link", layers.Limits{Depth: 5}, [][]entry{{f(deep(4), ""), s("l", "d/d/d")}, {f("l/d/y", "")}}, [][]entry{{f(deep(4), ""), s("l", "d/d/d")}, {f("l/d/e/f", "")}}},
		{"default depth", layers.Limits{}, [][]entry{{f(deep(254), "")}}, [][]entry{{f(deep(255), "")}}},
		{"path length", layers.Limits{PathLength: 20}, [][]entry{{f(repeat("n", 20), "")}}, [][]entry{{f(repeat("n", 21), "")}}},
		{"target length", layers.Limits{PathLength: 20}, [][]entry{{s("l", repeat("n", 20))}}, [][]entry{{s("l", repeat("n", 21))}}},
		{"default path length", layers.Limits{}, [][]entry{{s("l", repeat("n/", 2047)+"n")}}, [][]entry{{s("l", repeat("n/", 2048))}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pack := func(chain [][]entry) []layers.Layer {
				var streams [][]byte
				for _, entries := range chain {
					streams = append(streams, layer(t, entries...))
				}
				return chainOf(streams...)
			}
			if out, _, err := build(t, pack(tt.fits), layers.Config{Limits: tt.limits}); err != nil {
				t.Errorf("what fits: %v", err)
			} else {
				fsck(t, out.Name())
			}
			_, _, err := build(t, pack(tt.over), layers.Config{Limits: tt.limits})
			oneOf(t, err, layers.ErrLimit)
		})
	}
}

// made is the entries that Build itself may add: none count but /etc.
const made = 1

// bomb streams a tar whose entries are made while they are read.
type bomb struct {
	buf  bytes.Buffer
	w    *tar.Writer
	next func(n int) tar.Header
	n    int
	peak *uint64
}

func newBomb(peak *uint64, next func(n int) tar.Header) *bomb {
	b := &bomb{next: next, peak: peak}
	b.w = tar.NewWriter(&b.buf)
	return b
}

func (b *bomb) Read(p []byte) (int, error) {
	for b.buf.Len() < len(p) {
		h := b.next(b.n)
		if err := b.w.WriteHeader(&h); err != nil {
			return 0, err
		}
		if b.n++; b.n%5000 == 0 {
			*b.peak = max(*b.peak, heapBytes())
		}
	}
	return b.buf.Read(p)
}

// heapBytes is the memory that the Go heap holds, garbage included.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestBombsStayWithinMemory is ATTACKS.md D3: endless layers are refused by the
// default limits, and the refusal costs less than 256 MB.
func TestBombsStayWithinMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	reg := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }
	for name, next := range map[string]func(int) tar.Header{
		"empty files": func(n int) tar.Header { return reg(fmt.Sprintf("dir/file-%d", n)) },
		"directories": func(n int) tar.Header { return reg(fmt.Sprintf("%d/%d/%d/x", n/10000, n/100, n)) },
		"deep trees":  func(n int) tar.Header { return reg(fmt.Sprintf("%d/%sx", n, repeat("d/", 40))) },
		"long targets": func(n int) tar.Header {
			return tar.Header{Name: fmt.Sprint(n), Typeflag: tar.TypeSymlink, Linkname: repeat("t", 4000) + fmt.Sprint(n)}
		},
		"links that wait": func(n int) tar.Header {
			return tar.Header{Name: fmt.Sprint(n), Typeflag: tar.TypeLink, Linkname: fmt.Sprint(n + 1)}
		},
		"short name in a large header": func(n int) tar.Header {
			return tar.Header{Name: fmt.Sprint(n), Typeflag: tar.TypeReg, Format: tar.FormatPAX,
				PAXRecords: map[string]string{"GAOL.pad": repeat("p", 50_000)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			before, peak := heapBytes(), uint64(0)
			// An upper layer takes more: what it touches is remembered.
			chain := append(chainOf(nil), layers.Layer{Open: func() (io.ReadCloser, error) {
				return io.NopCloser(newBomb(&peak, next)), nil
			}})
			_, _, err := build(t, chain, layers.Config{Limits: layers.Limits{Bytes: 1 << 29}})
			oneOf(t, err, layers.ErrLimit)
			used := (int64(peak) - int64(before)) >> 20
			if t.Logf("took %d MB of heap", used); used > 256 {
				t.Error("that is more than 256 MB")
			}
		})
	}
}

// TestMarkersAndLinksTakeLinearTime: layers of nothing but markers over a large
// directory, and links that wait for links, end soon.
func TestMarkersAndLinksTakeLinearTime(t *testing.T) {
	const n = 30_000
	var files, markers, links []entry
	for i := range n {
		files = append(files, f(fmt.Sprintf("d/%d", i), ""))
		markers = append(markers, f(fmt.Sprintf("d/new-%d", i), ""), wh("d/.wh..wh..opq"))
		links = append(links, h(fmt.Sprintf("l%d", (i*7919)%n), fmt.Sprintf("l%d", (i*7919)%n+1)))
	}
	links = append(links, f(fmt.Sprintf("l%d", n), "end"))
	out, info := mustBuild(t, layer(t, files...), layer(t, markers...), layer(t, links...))
	if st := stat(t, out, "l0"); st.Nlink != n+1 {
		t.Errorf("l0 has %d links, want %d", st.Nlink, n+1)
	}
	if info.Entries < 2*n {
		t.Errorf("%d entries", info.Entries)
	}
}

// TestSparseBombs: a file of 2^60 bytes that takes 1 KB of tar is refused by its
// size, before a byte of it is written.
func TestSparseBombs(t *testing.T) {
	for name, stream := range map[string][]byte{
		"plain": rawHeader('0', 1<<60, nil),
		"GNU": rawHeader('S', 0, func(b []byte) {
			base256(b[483:495], 1<<60) // the real size
			copy(b[386:], "00000000000\x0000000000000\x00")
		}),
		"PAX": append(paxRecords(t, "GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=x", "GNU.sparse.realsize=1152921504606846976"),
			append(rawHeader('0', 512, nil), append([]byte("0\n"), make([]byte, 510)...)...)...),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := build(t, chainOf(stream), layers.Config{})
			oneOf(t, err, layers.ErrLimit)
		})
	}
}

// TestSparseFileCostsNoDisk: holes stay holes.
func TestSparseFileCostsNoDisk(t *testing.T) {
	const size = 1 << 30
	stream := append(paxRecords(t, "GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=x", fmt.Sprintf("GNU.sparse.realsize=%d", size)),
		append(rawHeader('0', 512, nil), append([]byte("0\n"), make([]byte, 510)...)...)...)
	out, info, err := build(t, chainOf(stream), layers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if st := stat(t, out, "x"); st.Size != size || info.Bytes != size {
		t.Errorf("the file has %d bytes, counted %d", st.Size, info.Bytes)
	}
	if used := diskBytes(t, out); used > 1<<20 {
		t.Errorf("the image takes %d bytes of disk", used)
	}
}

// TestLargeHeadersAreRefused: archive/tar's own bound on extension headers,
// which ours rely on, holds.
func TestLargeHeadersAreRefused(t *testing.T) {
	for _, kind := range []byte{'x', 'g', 'L', 'K'} {
		zero := io.LimitReader(endless{}, 1<<30)
		chain := []layers.Layer{{Open: func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(rawHeader(kind, 1<<30, nil)), zero)), nil
		}}}
		_, _, err := build(t, chain, layers.Config{})
		oneOf(t, err, tar.ErrFieldTooLong, tar.ErrHeader)
	}
}

// TestTrailingBytes: the stream is read to its very end, where the caller knows
// the digest, and an end that never comes is stopped.
func TestTrailingBytes(t *testing.T) {
	wrong := errors.New("digest differs")
	good := layer(t, f("x", "1"))
	open := func(r io.Reader, closed error) []layers.Layer {
		return []layers.Layer{{Open: func() (io.ReadCloser, error) { return stream{r, closed}, nil }}}
	}
	rest := strings.NewReader(repeat("junk", 100_000))
	if _, _, err := build(t, open(io.MultiReader(bytes.NewReader(good), rest), nil), layers.Config{}); err != nil || rest.Len() != 0 {
		t.Errorf("%v, %d bytes left unread", err, rest.Len())
	}
	_, _, err := build(t, open(io.MultiReader(bytes.NewReader(good), failing{wrong}), nil), layers.Config{})
	oneOf(t, err, wrong)
	_, _, err = build(t, open(bytes.NewReader(good), wrong), layers.Config{})
	oneOf(t, err, wrong)
	_, _, err = build(t, []layers.Layer{{Open: func() (io.ReadCloser, error) { return nil, wrong }}}, layers.Config{})
	oneOf(t, err, wrong)
	_, _, err = build(t, open(io.MultiReader(bytes.NewReader(good), endless{}), nil), layers.Config{Limits: layers.Limits{Bytes: 1 << 24}})
	oneOf(t, err, layers.ErrLimit)
	_, _, err = build(t, open(bytes.NewReader(good[:512]), nil), layers.Config{})
	oneOf(t, err, io.ErrUnexpectedEOF)
}

func TestCancelStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	peak, stopped := uint64(0), 1000
	b := newBomb(&peak, func(n int) tar.Header {
		if n == stopped {
			cancel()
		}
		return tar.Header{Name: fmt.Sprint(n), Typeflag: tar.TypeReg}
	})
	out, err := os.Create(t.TempDir() + "/image")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	_, err = layers.Build(ctx, out, []layers.Layer{{Open: func() (io.ReadCloser, error) { return io.NopCloser(b), nil }}}, layers.Config{})
	oneOf(t, err, context.Canceled)
	if b.n > stopped+2000 {
		t.Errorf("read %d entries after the cancel", b.n-stopped)
	}
}
