package erofs

import (
	"encoding/binary"
	"maps"
	"slices"
)

type dirent struct {
	name  string
	inode *Inode
}

// listing is the directory's entries in byte order, which readers search by
// bisection; "." and ".." take their places among them.
func (i *Inode) listing(parent *Inode) []dirent {
	names := slices.AppendSeq(make([]string, 0, len(i.Entries)+2), maps.Keys(i.Entries))
	names = append(names, ".", "..")
	slices.Sort(names)
	list := make([]dirent, len(names))
	for n, name := range names {
		switch name {
		case ".":
			list[n] = dirent{name, i}
		case "..":
			list[n] = dirent{name, parent}
		default:
			list[n] = dirent{name, i.Entries[name]}
		}
	}
	return list
}

// nextBlock is how many of the entries fit into one block, and the bytes they
// take there.
func nextBlock(list []dirent) (count, size int) {
	for _, d := range list {
		need := direntSize + len(d.name)
		if size+need > BlockSize {
			break
		}
		size += need
		count++
	}
	return count, size
}

// listingSize is the length of the directory's content.
func listingSize(list []dirent) int64 {
	var total int64
	for {
		count, size := nextBlock(list)
		if list = list[count:]; len(list) == 0 {
			return total + int64(size)
		}
		total += BlockSize
	}
}

// encodeListing appends the directory's content. Every block stands for
// itself: its entries, then their names. All but the last are full.
func encodeListing(to []byte, list []dirent) []byte {
	le := binary.LittleEndian
	for {
		count, size := nextBlock(list)
		name := count * direntSize
		for _, d := range list[:count] {
			to = le.AppendUint64(to, uint64(d.inode.slot)) //nolint:gosec // a place
			to = le.AppendUint16(to, uint16(name))         //nolint:gosec // within a block
			to = append(to, d.inode.direntType(), 0)
			name += len(d.name)
		}
		for _, d := range list[:count] {
			to = append(to, d.name...)
		}
		if list = list[count:]; len(list) == 0 {
			return to
		}
		to = append(to, zeros[:BlockSize-size]...)
	}
}
