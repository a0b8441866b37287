package core

import (
	"encoding/binary"

	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// checksumField is where the checksum begins in the common header, which ends with
// it.
const checksumField = wire.HeaderLen - 4

// setChecksum is [wire.SetChecksum] for the packet b[at:] with parts in vecs. Its checksum field is zero.
func setChecksum(b []byte, at int, vecs []slab.IOVec) {
	c, from := uint32(0), at
	for i := range vecs {
		h := &vecs[i]
		c = wire.UpdateChecksum(c, b[from:h.At])
		c = wire.UpdateChecksum(c, h.B)
		from = h.At + len(h.B)
	}
	c = wire.UpdateChecksum(c, b[from:])
	binary.LittleEndian.PutUint32(b[at+checksumField:], c)
}

// setChecksumCopying is setChecksum for a packet with a deferred part, which it copies.
func setChecksumCopying(b []byte, at int, part slab.IOVec) {
	end := part.At + len(part.B)
	c := wire.UpdateChecksum(0, b[at:part.At])
	c = wire.CopyChecksum(c, b[part.At:end], part.B)
	if end < len(b) {
		c = wire.UpdateChecksum(c, b[end:])
	}
	binary.LittleEndian.PutUint32(b[at+checksumField:], c)
}
