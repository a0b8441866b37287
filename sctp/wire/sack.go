package wire

import "encoding/binary"

// sackValueLen is the length of the fixed part of a SACK, without the chunk
// header.
const sackValueLen = 12

// SackHeaderLen is the length of a SACK without gap blocks and duplicates. Each
// gap block and each duplicate adds four bytes.
const SackHeaderLen = tlvLen + sackValueLen

// GapBlock is one gap ack block: TSNs CumTSN+Start to CumTSN+End, both
// included, were received (RFC 9260, Section 3.3.4).
type GapBlock struct{ Start, End uint16 }

// GapBlocks is a view of the gap ack blocks of a SACK. It aliases the packet.
type GapBlocks struct{ b []byte }

// Len returns how many blocks there are.
func (g GapBlocks) Len() int { return len(g.b) / 4 }

// At returns block i, which must be in [0, Len()).
func (g GapBlocks) At(i int) GapBlock {
	b := g.b[4*i : 4*i+4]
	return GapBlock{Start: binary.BigEndian.Uint16(b), End: binary.BigEndian.Uint16(b[2:])}
}

// AppendTo appends the blocks to dst.
func (g GapBlocks) AppendTo(dst []GapBlock) []GapBlock {
	for i := range g.Len() {
		dst = append(dst, g.At(i))
	}
	return dst
}

// Sack is a SACK chunk (RFC 9260, Section 3.3.4).
type Sack struct {
	// CumTSN is the cumulative TSN ack.
	CumTSN uint32
	// RWND is the advertised receiver window credit, in bytes.
	RWND uint32
	// Gaps are the gap ack blocks. They are given as they came: a block may be
	// empty, overlap another or be out of order.
	Gaps GapBlocks
	// Dups are the TSNs that were received more than once.
	Dups Uint32s
}

// ParseSack reads a SACK chunk. Gaps and Dups alias c. It returns ErrLength
// when the counts do not add up to the length of the chunk.
func ParseSack(c Chunk) (Sack, error) {
	if c.Type != ChunkSack {
		return Sack{}, ErrType
	}
	v := c.Value
	if len(v) < sackValueLen {
		return Sack{}, ErrTruncated
	}
	gaps := 4 * int(binary.BigEndian.Uint16(v[8:]))
	dups := 4 * int(binary.BigEndian.Uint16(v[10:]))
	if len(v) != sackValueLen+gaps+dups {
		return Sack{}, ErrLength
	}
	lists := v[sackValueLen:]
	return Sack{
		CumTSN: binary.BigEndian.Uint32(v[0:]),
		RWND:   binary.BigEndian.Uint32(v[4:]),
		Gaps:   GapBlocks{lists[:gaps]},
		Dups:   Uint32s{lists[gaps:]},
	}, nil
}

// maxSackEntries is how many gap blocks and duplicates together a chunk can
// carry.
const maxSackEntries = (MaxLength - SackHeaderLen) / 4

// AppendSack appends a SACK chunk. If the lists are longer than a chunk can
// carry, it drops duplicates and then gap blocks from their ends.
func AppendSack(b []byte, cum, rwnd uint32, gaps []GapBlock, dups []uint32) []byte {
	gaps = gaps[:min(len(gaps), maxSackEntries)]
	dups = dups[:min(len(dups), maxSackEntries-len(gaps))]
	b = appendFixed(b, ChunkSack, 0, sackValueLen+4*(len(gaps)+len(dups)))
	b = binary.BigEndian.AppendUint32(b, cum)
	b = binary.BigEndian.AppendUint32(b, rwnd)
	b = binary.BigEndian.AppendUint16(b, uint16(len(gaps)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(dups)))
	for _, g := range gaps {
		b = binary.BigEndian.AppendUint16(b, g.Start)
		b = binary.BigEndian.AppendUint16(b, g.End)
	}
	for _, d := range dups {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return b
}
