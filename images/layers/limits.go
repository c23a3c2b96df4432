package layers

import (
	"errors"
	"fmt"
)

// ErrLimit says that the layers hold more than [Limits] allows.
var ErrLimit = errors.New("image exceeds limit")

// Limits bounds what one build may take, over all layers together. A field that
// is zero or negative means its default, never "unlimited".
type Limits struct {
	// Bytes bounds the layers' uncompressed streams and, by itself, the contents
	// of all files, holes of sparse files counted. Default 16 GiB.
	Bytes int64
	// Entries bounds the tar entries and the directories made as their parents.
	// It bounds memory: about 400 bytes each. Default 400,000.
	Entries int
	// Names bounds the bytes of all names and link targets. Default 48 MiB.
	Names int64
	// Layers bounds the chain. Default 500.
	Layers int
	// Depth bounds the directories from the root to a file. Default 255, at most
	// 1000.
	Depth int
	// PathLength bounds the bytes of an entry's name and of a link's target.
	// Default, and at most, 4095.
	PathLength int
}

func (l Limits) orDefault() Limits {
	l.Bytes = or(l.Bytes, 16<<30)
	l.Entries = or(l.Entries, 400_000)
	l.Names = or(l.Names, 48<<20)
	l.Layers = or(l.Layers, 500)
	l.Depth = min(or(l.Depth, 255), 1000)
	l.PathLength = min(or(l.PathLength, 4095), 4095)
	return l
}

func or[N int | int64](value, byDefault N) N {
	if value <= 0 {
		return byDefault
	}
	return value
}

func exceeded(what string, limit int64) error {
	return fmt.Errorf("more than %d %s: %w", limit, what, ErrLimit)
}

// budget is what is left of the limits.
type budget struct {
	limits  Limits
	stream  int64
	content int64
	names   int64
	entries int
}

func (b *budget) entry() error {
	if b.entries++; b.entries > b.limits.Entries {
		return exceeded("entries", int64(b.limits.Entries))
	}
	return nil
}

func (b *budget) name(s string) error {
	if b.names += int64(len(s)); b.names > b.limits.Names {
		return exceeded("bytes of names", b.limits.Names)
	}
	return nil
}

// file takes a file's size before any of it is read or written.
func (b *budget) file(size int64) error {
	if size < 0 || size > b.limits.Bytes-b.content {
		return exceeded("bytes of file contents", b.limits.Bytes)
	}
	b.content += size
	return nil
}

func (b *budget) read(n int) error {
	if b.stream += int64(n); b.stream > b.limits.Bytes {
		return exceeded("bytes of layers", b.limits.Bytes)
	}
	return nil
}

func (b *budget) paths(names ...string) error {
	for _, name := range names {
		if len(name) > b.limits.PathLength {
			return exceeded("bytes in a path", int64(b.limits.PathLength))
		}
	}
	return nil
}
