package erofs

import (
	"encoding/binary"
	"hash/crc32"
)

// BlockSize is the size of a block in bytes. gVisor accepts no smaller one.
const BlockSize = 4096

// Limits of the format, in bytes.
const (
	MaxName   = 255
	MaxTarget = BlockSize - 1 // gVisor cuts longer targets
)

const (
	blockBits        = 12
	superOffset      = 1024
	superSize        = 128
	superMagic       = 0xe0f5e1e2
	featureChecksum  = 1
	slotSize         = 32
	inodeSize        = 64
	direntSize       = 12
	layoutPlain      = 0 << 1
	layoutInline     = 2 << 1
	inodeExtended    = 1
	firstSlot        = 2 // number 0 would hide the root from readdir
	maxBlocks        = 1<<32 - 1
	inlineRoom       = BlockSize - inodeSize
	checksumCoverage = BlockSize - superOffset
)

// Label is what the superblock says about the image besides its layout. Both
// fields are free; zero is fine.
type Label struct {
	UUID [16]byte
	Name [16]byte
}

type super struct {
	label     Label
	inodes    uint64
	blocks    uint32
	metaBlock uint32
}

// encode returns the first block of the image.
func (s super) encode() []byte {
	block := make([]byte, BlockSize)
	b, le := block[superOffset:], binary.LittleEndian
	le.PutUint32(b[0:], superMagic)
	le.PutUint32(b[8:], featureChecksum)
	b[12] = blockBits
	le.PutUint16(b[14:], firstSlot) // the root comes first
	le.PutUint64(b[16:], s.inodes)
	le.PutUint32(b[36:], s.blocks)
	le.PutUint32(b[40:], s.metaBlock)
	copy(b[48:], s.label.UUID[:])
	copy(b[64:], s.label.Name[:])
	// The format keeps the CRC without its final inversion.
	le.PutUint32(b[4:], ^crc32.Checksum(b[:checksumCoverage], crc32.MakeTable(crc32.Castagnoli)))
	return block
}

// encode appends the inode in its extended form; size is the length of its
// content and block the first block of it, unless the content is inline.
func (i *Inode) encode(to []byte, size int64, block uint32, inline bool) []byte {
	layout := uint16(inodeExtended | layoutPlain)
	if inline {
		layout = inodeExtended | layoutInline
	}
	le := binary.LittleEndian
	to = le.AppendUint16(to, layout)
	to = le.AppendUint16(to, 0) // extended attributes
	to = le.AppendUint16(to, i.Mode)
	to = le.AppendUint16(to, 0)
	to = le.AppendUint64(to, uint64(size)) //nolint:gosec // a length
	to = le.AppendUint32(to, block)
	to = le.AppendUint32(to, i.ino)
	to = le.AppendUint32(to, i.UID)
	to = le.AppendUint32(to, i.GID)
	to = le.AppendUint64(to, uint64(i.Mtime)) //nolint:gosec // signed to its readers
	to = le.AppendUint32(to, i.MtimeNsec)
	to = le.AppendUint32(to, i.links)
	return append(to, make([]byte, 16)...)
}
