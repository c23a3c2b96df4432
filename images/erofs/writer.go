package erofs

import (
	"fmt"
	"io"
	"os"
)

// Writer writes one image. It is for one goroutine.
type Writer struct {
	s stream
}

// Create starts an image in out, which must be open for reading and writing;
// what it held is gone. The caller syncs and closes out, also after an error,
// when the file holds no valid image: its superblock is written last.
func Create(out *os.File) (*Writer, error) {
	if err := out.Truncate(0); err != nil {
		return nil, fmt.Errorf("empty image file: %w", err)
	}
	w := &Writer{s: stream{out: out, buf: make([]byte, 0, bufferSize)}}
	return w, w.s.write(zeros[:])
}

// Append copies r to its end into the image as the content of one regular
// file. Content that no inode refers to in the end stays in the image, unused.
func (w *Writer) Append(r io.Reader) (Extent, error) {
	block, err := w.s.block()
	if err != nil {
		return Extent{}, err
	}
	size, err := w.s.readFrom(r)
	if err != nil {
		return Extent{}, err
	}
	if err := w.s.pad(); err != nil {
		return Extent{}, err
	}
	if size == 0 {
		return Extent{}, nil
	}
	return Extent{block: block, Size: size}, nil
}

// Content reads back what Append stored. It is for use before the next call of
// another method.
func (w *Writer) Content(e Extent) (io.Reader, error) {
	if err := w.s.flush(); err != nil {
		return nil, err
	}
	// A hole at the end is not in the file yet.
	if err := w.s.out.Truncate(w.s.flushed); err != nil {
		return nil, fmt.Errorf("extend image: %w", err)
	}
	return io.NewSectionReader(w.s.out, int64(e.block)*BlockSize, e.Size), nil
}

// Finish writes the tree under root and then the superblock. The Writer is of
// no use afterwards.
func (w *Writer) Finish(root *Inode, label Label) error {
	t, err := number(root)
	if err != nil {
		return err
	}
	if err := w.writeOutside(t); err != nil {
		return err
	}
	meta, err := w.s.block()
	if err != nil {
		return err
	}
	if err := w.writeInodes(t); err != nil {
		return err
	}
	blocks, err := w.s.block()
	if err != nil {
		return err
	}
	if err := w.s.flush(); err != nil {
		return err
	}
	if err := w.s.out.Truncate(w.s.flushed); err != nil {
		return fmt.Errorf("extend image: %w", err)
	}
	sb := super{label: label, inodes: uint64(len(t.order)), blocks: blocks, metaBlock: meta}
	if _, err := w.s.out.WriteAt(sb.encode(), 0); err != nil {
		return fmt.Errorf("write superblock: %w", err)
	}
	return nil
}
