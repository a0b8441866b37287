package wire

import "encoding/binary"

// forwardValueLen is the length of the fixed part of FORWARD-TSN and
// I-FORWARD-TSN, without the chunk header.
const forwardValueLen = 4

// Skip is one entry of a FORWARD-TSN: the largest stream sequence number that
// the sender skips in a stream, for ordered messages.
type Skip struct{ SID, SSN uint16 }

// Skips is a view of the entries of a FORWARD-TSN. It aliases the packet.
type Skips struct{ b []byte }

const skipLen = 4

// Len returns how many entries there are.
func (v Skips) Len() int { return len(v.b) / skipLen }

// At returns entry i, which must be in [0, Len()).
func (v Skips) At(i int) Skip {
	b := v.b[skipLen*i : skipLen*i+skipLen]
	return Skip{SID: binary.BigEndian.Uint16(b), SSN: binary.BigEndian.Uint16(b[2:])}
}

// AppendTo appends the entries to dst.
func (v Skips) AppendTo(dst []Skip) []Skip {
	for i := range v.Len() {
		dst = append(dst, v.At(i))
	}
	return dst
}

// ForwardTSN is a FORWARD-TSN chunk (RFC 3758, Section 3.2).
type ForwardTSN struct {
	// CumTSN is the new cumulative TSN.
	CumTSN uint32
	Skips  Skips
}

// ParseForwardTSN reads a FORWARD-TSN chunk. Skips aliases c.
func ParseForwardTSN(c Chunk) (ForwardTSN, error) {
	v, err := parseForward(c, ChunkForwardTSN, skipLen)
	if err != nil {
		return ForwardTSN{}, err
	}
	return ForwardTSN{CumTSN: binary.BigEndian.Uint32(v), Skips: Skips{v[forwardValueLen:]}}, nil
}

// parseForward returns the value of a chunk of type t that ends in entries of
// the given size.
func parseForward(c Chunk, t ChunkType, size int) ([]byte, error) {
	if c.Type != t {
		return nil, ErrType
	}
	if len(c.Value) < forwardValueLen {
		return nil, ErrTruncated
	}
	if (len(c.Value)-forwardValueLen)%size != 0 {
		return nil, ErrLength
	}
	return c.Value, nil
}

// MaxSkips is how many entries a FORWARD-TSN can carry.
const MaxSkips = (MaxLength - tlvLen - forwardValueLen) / skipLen

// AppendForwardTSN appends a FORWARD-TSN chunk. It sends the first MaxSkips
// entries of skips.
func AppendForwardTSN(b []byte, cum uint32, skips []Skip) []byte {
	skips = skips[:min(len(skips), MaxSkips)]
	b = appendFixed(b, ChunkForwardTSN, 0, forwardValueLen+skipLen*len(skips))
	b = binary.BigEndian.AppendUint32(b, cum)
	for _, s := range skips {
		b = binary.BigEndian.AppendUint16(b, s.SID)
		b = binary.BigEndian.AppendUint16(b, s.SSN)
	}
	return b
}

// ISkip is one entry of an I-FORWARD-TSN: the largest message identifier that
// the sender skips in a stream, among its ordered or its unordered messages.
type ISkip struct {
	SID       uint16
	Unordered bool
	MID       uint32
}

// ISkips is a view of the entries of an I-FORWARD-TSN. It aliases the packet.
type ISkips struct{ b []byte }

const iskipLen = 8

// Len returns how many entries there are.
func (v ISkips) Len() int { return len(v.b) / iskipLen }

// At returns entry i, which must be in [0, Len()).
func (v ISkips) At(i int) ISkip {
	b := v.b[iskipLen*i : iskipLen*i+iskipLen]
	return ISkip{
		SID:       binary.BigEndian.Uint16(b),
		Unordered: b[3]&1 != 0,
		MID:       binary.BigEndian.Uint32(b[4:]),
	}
}

// AppendTo appends the entries to dst.
func (v ISkips) AppendTo(dst []ISkip) []ISkip {
	for i := range v.Len() {
		dst = append(dst, v.At(i))
	}
	return dst
}

// IForwardTSN is an I-FORWARD-TSN chunk (RFC 8260, Section 2.3.1).
type IForwardTSN struct {
	// CumTSN is the new cumulative TSN.
	CumTSN uint32
	Skips  ISkips
}

// ParseIForwardTSN reads an I-FORWARD-TSN chunk. Skips aliases c.
func ParseIForwardTSN(c Chunk) (IForwardTSN, error) {
	v, err := parseForward(c, ChunkIForwardTSN, iskipLen)
	if err != nil {
		return IForwardTSN{}, err
	}
	return IForwardTSN{CumTSN: binary.BigEndian.Uint32(v), Skips: ISkips{v[forwardValueLen:]}}, nil
}

// MaxISkips is how many entries an I-FORWARD-TSN can carry.
const MaxISkips = (MaxLength - tlvLen - forwardValueLen) / iskipLen

// AppendIForwardTSN appends an I-FORWARD-TSN chunk. It sends the first
// MaxISkips entries of skips.
func AppendIForwardTSN(b []byte, cum uint32, skips []ISkip) []byte {
	skips = skips[:min(len(skips), MaxISkips)]
	b = appendFixed(b, ChunkIForwardTSN, 0, forwardValueLen+iskipLen*len(skips))
	b = binary.BigEndian.AppendUint32(b, cum)
	for _, s := range skips {
		b = binary.BigEndian.AppendUint16(b, s.SID)
		b = append(b, 0, flag(s.Unordered, 1))
		b = binary.BigEndian.AppendUint32(b, s.MID)
	}
	return b
}
