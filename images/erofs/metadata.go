package erofs

// writeOutside writes the directories and symbolic links that are too large
// to lie beside their inode.
func (w *Writer) writeOutside(t *tree) error {
	var content []byte
	for n := range t.order {
		p := &t.order[n]
		if p.inline || (p.Type() != Directory && p.Type() != Symlink) {
			continue
		}
		block, err := w.s.block()
		if err != nil {
			return err
		}
		p.block = block
		content = p.content(content[:0])
		if err := w.s.write(content); err != nil {
			return err
		}
		if err := w.s.pad(); err != nil {
			return err
		}
	}
	return nil
}

// writeInodes writes the metadata area.
func (w *Writer) writeInodes(t *tree) error {
	start := w.s.offset()
	var record []byte
	for n := range t.order {
		p := &t.order[n]
		gap := start + p.slot*slotSize - w.s.offset()
		if err := w.s.write(zeros[:gap]); err != nil {
			return err
		}
		record = p.encode(record[:0], p.size, p.block, p.inline)
		if p.inline {
			record = p.content(record)
		}
		if err := w.s.write(record); err != nil {
			return err
		}
	}
	// fsck.erofs reads 12 bytes behind the last inode, attributes or not.
	if err := w.s.write(zeros[:slotSize]); err != nil {
		return err
	}
	return w.s.pad()
}

// content appends the content of a directory or symbolic link.
func (p *placed) content(to []byte) []byte {
	if p.IsDir() {
		return encodeListing(to, p.listing(p.parent))
	}
	return append(to, p.Target...)
}
