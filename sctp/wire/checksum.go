package wire

import (
	"encoding/binary"

	"github.com/klauspost/crc32"
)

// checksumAt is where the checksum field starts in a packet.
const checksumAt = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum computes the CRC32c of an SCTP packet as if its checksum field were
// zero (RFC 9260, Section 6.8 and Appendix A). It does not change pkt. For a
// pkt shorter than a common header it returns 0.
func Checksum(pkt []byte) uint32 {
	if len(pkt) < HeaderLen {
		return 0
	}
	if [4]byte(pkt[checksumAt:HeaderLen]) == [4]byte{} {
		return crc32c(pkt)
	}
	// Three pieces, because a header copied with its field cleared would
	// escape to the heap.
	c := crc32.Update(0, castagnoli, pkt[:checksumAt])
	c = crc32.Update(c, castagnoli, zeros[:HeaderLen-checksumAt])
	return crc32.Update(c, castagnoli, pkt[HeaderLen:])
}

// SetChecksum computes the CRC32c of pkt and stores it in its header. It does
// nothing when pkt is shorter than a common header.
func SetChecksum(pkt []byte) {
	if len(pkt) < HeaderLen {
		return
	}
	// RFC 9260, Appendix A: the CRC is put into the packet with its least
	// significant byte first, unlike every other field.
	binary.LittleEndian.PutUint32(pkt[checksumAt:], Checksum(pkt))
}

// VerifyChecksum reports whether pkt has a common header and carries the right
// CRC32c.
func VerifyChecksum(pkt []byte) bool {
	return len(pkt) >= HeaderLen && binary.LittleEndian.Uint32(pkt[checksumAt:]) == Checksum(pkt)
}

// VerifyInPlace is VerifyChecksum for a pkt that the caller owns: it is faster,
// but pkt changes for the time of the call.
func VerifyInPlace(pkt []byte) bool {
	if len(pkt) < HeaderLen {
		return false
	}
	field := pkt[checksumAt:HeaderLen]
	sum := binary.LittleEndian.Uint32(field)
	clear(field)
	ok := crc32c(pkt) == sum
	binary.LittleEndian.PutUint32(field, sum)
	return ok
}
