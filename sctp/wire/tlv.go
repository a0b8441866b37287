package wire

import "encoding/binary"

// tlvLen is the length of the header of a chunk, a parameter and a cause. All
// three keep a 16-bit length, which counts the header, at offset 2.
const tlvLen = 4

// MaxLength is the largest value of the length field of a chunk, parameter or
// cause. The encoders cut a value that would not fit, which no value that came
// out of a packet can reach except by nesting.
const MaxLength = 0xffff

// Padded returns n rounded up to the four bytes that chunks, parameters and
// causes are aligned to (RFC 9260, Section 3.2).
func Padded(n int) int { return (n + 3) &^ 3 }

// cutTLV measures the structure at the start of b: n bytes of header and value,
// and next, where the one after it starts.
//
// RFC 9260, Section 3.2: the length of a chunk does not count its own padding,
// nor that of its last parameter, so a list of parameters or causes may end
// without padding; and a receiver should take a chunk that counts it. A packet
// that ends without the padding of its last chunk is taken too.
func cutTLV(b []byte) (n, next int, err error) {
	if len(b) < tlvLen {
		return 0, 0, ErrTruncated
	}
	n = int(binary.BigEndian.Uint16(b[2:]))
	if n < tlvLen {
		return 0, 0, ErrLength
	}
	if n > len(b) {
		return 0, 0, ErrTruncated
	}
	return n, min(Padded(n), len(b)), nil
}

// tlvs walks a list of chunks, parameters or causes without allocating. It is what [Chunks],
// [Params] and [Causes] have in common.
type tlvs struct {
	rest []byte // what follows the current structure and its padding
	raw  []byte // the current structure, without padding
	err  error
}

// Next moves to the next one. It returns false at the end or at a malformed one; Err
// tells which. The length field must be at least 4 and stay inside the list; the padding
// may be absent only where the list ends (RFC 9260, Section 3.2).
func (it *tlvs) Next() bool {
	if len(it.rest) == 0 || it.err != nil {
		return false
	}
	n, next, err := cutTLV(it.rest)
	if err != nil {
		it.err = err
		return false
	}
	it.raw, it.rest = it.rest[:n:n], it.rest[next:]
	return true
}

// Err returns ErrTruncated or ErrLength if the walk met a malformed structure, and nil
// otherwise.
func (it *tlvs) Err() error { return it.err }

// code returns the first 16 bits of the current structure: the type of a parameter or the
// code of a cause.
func (it *tlvs) code() uint16 { return binary.BigEndian.Uint16(it.raw) }

// value returns what follows the header of the current structure.
func (it *tlvs) value() []byte { return it.raw[tlvLen:] }

// endTLV sets the length of the structure that starts at b[at] and runs to the
// end of b, and pads it with zeros.
func endTLV(b []byte, at int) []byte {
	n := len(b) - at
	if n > MaxLength {
		n = MaxLength
		b = b[:at+n]
	}
	binary.BigEndian.PutUint16(b[at+2:], uint16(n))
	return pad(b, at)
}

// pad appends zeros until b[at:] is aligned.
func pad(b []byte, at int) []byte { return AppendPadding(b, len(b)-at) }

// trimList returns a list of encoded parameters or causes without the padding
// of the last one. RFC 9260, Section 3.2: the chunk length counts the padding
// of every parameter but the last. A malformed list is returned as it is.
func trimList(list []byte) []byte {
	for at := 0; at < len(list); {
		n, next, err := cutTLV(list[at:])
		if err != nil {
			return list
		}
		if at+next == len(list) {
			return list[:at+n]
		}
		at += next
	}
	return list
}

// Uint16s is a view of 16-bit numbers in a packet. It aliases the packet.
type Uint16s struct{ b []byte }

// Len returns how many numbers there are.
func (v Uint16s) Len() int { return len(v.b) / 2 }

// At returns number i, which must be in [0, Len()).
func (v Uint16s) At(i int) uint16 { return binary.BigEndian.Uint16(v.b[2*i:]) }

// Contains reports whether x is among the numbers.
func (v Uint16s) Contains(x uint16) bool {
	for i := range v.Len() {
		if v.At(i) == x {
			return true
		}
	}
	return false
}

// AppendTo appends the numbers to dst.
func (v Uint16s) AppendTo(dst []uint16) []uint16 {
	for i := range v.Len() {
		dst = append(dst, v.At(i))
	}
	return dst
}

// Uint32s is a view of 32-bit numbers in a packet. It aliases the packet.
type Uint32s struct{ b []byte }

// Len returns how many numbers there are.
func (v Uint32s) Len() int { return len(v.b) / 4 }

// At returns number i, which must be in [0, Len()).
func (v Uint32s) At(i int) uint32 { return binary.BigEndian.Uint32(v.b[4*i:]) }

// AppendTo appends the numbers to dst.
func (v Uint32s) AppendTo(dst []uint32) []uint32 {
	for i := range v.Len() {
		dst = append(dst, v.At(i))
	}
	return dst
}

func appendUint16s(b []byte, v []uint16) []byte {
	for _, x := range v {
		b = binary.BigEndian.AppendUint16(b, x)
	}
	return b
}
