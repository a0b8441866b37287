package wire

import "encoding/binary"

// HeaderLen is the length of the common header (RFC 9260, Section 3.1).
const HeaderLen = 12

// Header is the common header at the start of every SCTP packet (RFC 9260,
// Section 3.1).
type Header struct {
	SrcPort uint16
	DstPort uint16
	// VTag is the verification tag: the tag that the receiver of the packet
	// chose, or 0 in a packet that carries an INIT chunk.
	VTag uint32
	// Checksum is the CRC32c that the packet claims, in the same form that
	// [Checksum] computes it. [AppendHeader] writes it as it is; 0 is right
	// before a call of [SetChecksum].
	Checksum uint32
}

// ParseHeader reads the common header of a packet. It does not verify the
// checksum; see [VerifyChecksum]. It returns ErrTruncated when pkt is shorter
// than HeaderLen.
func ParseHeader(pkt []byte) (Header, error) {
	if len(pkt) < HeaderLen {
		return Header{}, ErrTruncated
	}
	return Header{
		SrcPort:  binary.BigEndian.Uint16(pkt[0:]),
		DstPort:  binary.BigEndian.Uint16(pkt[2:]),
		VTag:     binary.BigEndian.Uint32(pkt[4:]),
		Checksum: binary.LittleEndian.Uint32(pkt[checksumAt:]),
	}, nil
}

// AppendHeader appends the common header h to b.
func AppendHeader(b []byte, h Header) []byte {
	b = binary.BigEndian.AppendUint16(b, h.SrcPort)
	b = binary.BigEndian.AppendUint16(b, h.DstPort)
	b = binary.BigEndian.AppendUint32(b, h.VTag)
	return binary.LittleEndian.AppendUint32(b, h.Checksum)
}
