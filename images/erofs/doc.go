// Package erofs writes a tree of files as one EROFS image, a read-only file
// system that gVisor maps straight from the host's page cache.
//
// File contents are streamed first, in the order in which they come; the
// inodes and directories follow once the tree is known. Nothing but names and
// inodes is held in memory:
//
//	w, err := erofs.Create(file)
//	data, err := w.Append(strings.NewReader("hello\n"))
//	root := &erofs.Inode{Mode: erofs.Directory | 0o755, Entries: map[string]*erofs.Inode{
//		"hello": {Mode: erofs.Regular | 0o644, Data: data},
//	}}
//	err = w.Finish(root, erofs.Label{})
//
// The image uses the part of the format that gVisor's reader, Linux and
// fsck.erofs agree on: blocks of 4096 bytes, no compression, no chunks, no
// extra devices, no extended attributes (gVisor refuses an inode that has any).
// Regular files are never stored inline, since gVisor cannot map inline data;
// directories and symbolic links are, when they fit. An Inode found under two
// names is a hard link. The same calls give the same bytes.
//
// What it does not protect: names and modes are checked only as far as the
// format needs. Where a tree comes from, and how large it may grow, is for the
// caller to decide (package layers does so for OCI layers).
package erofs
