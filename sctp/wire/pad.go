package wire

import "encoding/binary"

// ParsePad checks a PAD chunk (RFC 4820, Section 3). Its data is ignored.
func ParsePad(c Chunk) error {
	if c.Type != ChunkPad {
		return ErrType
	}
	return nil
}

// AppendPad appends a PAD chunk that takes n bytes in all. It rounds n down to
// a multiple of four and into [4, MaxLength].
func AppendPad(b []byte, n int) []byte {
	n = min(max(n, tlvLen), MaxLength) &^ 3
	b = appendFixed(b, ChunkPad, 0, n-tlvLen)
	return appendZeros(b, n-tlvLen)
}

// ParsePadParam checks a PAD parameter (RFC 4820, Section 4). Its data is
// ignored.
func ParsePadParam(p Param) error {
	if p.Type != ParamPad {
		return ErrType
	}
	return nil
}

// AppendPadParam appends a PAD parameter that takes n bytes in all, rounded as
// in AppendPad. It may stand only in an INIT chunk.
func AppendPadParam(b []byte, n int) []byte {
	n = min(max(n, tlvLen), MaxLength) &^ 3
	b = append(b, uint8(ParamPad>>8), uint8(ParamPad&0xff))
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	return appendZeros(b, n-tlvLen)
}

var zeros [256]byte

func appendZeros(b []byte, n int) []byte {
	for ; n > len(zeros); n -= len(zeros) {
		b = append(b, zeros[:]...)
	}
	return append(b, zeros[:n]...)
}
