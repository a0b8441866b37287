package rconn

import "encoding/binary"

// headerLen is the size of the header of each message of RDMAP: a flag octet, an
// octet of zero, the credits that are given back (16 bits), four octets of zero.
const headerLen = 8

// Flags of a header.
const (
	flagData = 1 << iota // it carries a part of a message
	flagMore             // and not the last one
)

// header is what stands in front of each part of a message.
type header struct {
	flags   byte
	credits uint16
}

func (h header) put(b []byte) {
	clear(b[:headerLen])
	b[0] = h.flags
	binary.BigEndian.PutUint16(b[2:], h.credits)
}

// parseHeader reads a header. It reports false for what is none.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < headerLen {
		return h, false
	}
	h = header{b[0], binary.BigEndian.Uint16(b[2:])}
	return h, h.flags == 0 && len(b) == headerLen || h.flags == flagData || h.flags == flagData|flagMore
}

// card is what each side tells of itself in the private data: two octets of
// magic number, one of version, one of zero, the number of its receive buffers
// (16 bits), two octets of zero, and their size (32 bits).
type card struct{ buffers, size int }

const (
	cardLen = 12
	magic   = 0x7243
	version = 1
)

func (c card) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, magic)
	b = append(b, version, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(c.buffers))
	b = append(b, 0, 0)
	return binary.BigEndian.AppendUint32(b, uint32(c.size))
}

func parseCard(b []byte) (c card, ok bool) {
	if len(b) != cardLen || binary.BigEndian.Uint16(b) != magic || b[2] != version {
		return c, false
	}
	c.buffers, c.size = int(binary.BigEndian.Uint16(b[4:])), int(binary.BigEndian.Uint32(b[8:]))
	return c, c.buffers >= 1 && c.buffers <= MaxBuffers && c.size >= MinSize && c.size <= MaxSize
}
