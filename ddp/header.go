package ddp

import "encoding/binary"

// Sizes of the headers (RFC 5041, Sections 4.2 and 4.3).
const (
	TaggedHeaderLen   = 14
	UntaggedHeaderLen = 18
)

// Version is the DV of RFC 5041, Section 4.1.
const Version = 1

// Bits of the DDP control octet (RFC 5041, Section 4.1).
const (
	bitTagged   = 0x80
	bitLast     = 0x40
	maskVersion = 0x03
)

// Header is a DDP header of either kind.
type Header struct {
	// Tagged tells the tagged from the untagged buffer model, Last marks the
	// last segment of a message.
	Tagged, Last bool
	// Ctrl is the first octet of RsvdULP.
	Ctrl uint8
	// QN, MSN, MO and Word (the other four octets of RsvdULP) are the fields
	// of an untagged header.
	QN, MSN, MO, Word uint32
	// STag and TO are the fields of a tagged header.
	STag uint32
	TO   uint64
}

// Len returns the size of the header on the wire.
func (h *Header) Len() int {
	if h.Tagged {
		return TaggedHeaderLen
	}
	return UntaggedHeaderLen
}

// advance makes h the header of what comes n bytes of payload later.
func (h *Header) advance(n int) {
	if h.Tagged {
		h.TO += uint64(n)
	} else {
		h.MO += uint32(n)
	}
}

// ParseHeader reads the header at the start of a segment. The payload aliases
// seg. The fault is FaultLocal for a segment shorter than its header and
// FaultTaggedVersion or FaultUntaggedVersion for another DV; with those two
// the header is valid as far as version 1 goes. Reserved bits are ignored
// (RFC 5041, Section 4.1: "not checked on receive").
func ParseHeader(seg []byte) (h Header, payload []byte, f Fault) {
	payload, f = h.parse(seg)
	return h, payload, f
}

// parse is ParseHeader to h.
func (h *Header) parse(seg []byte) (payload []byte, f Fault) {
	*h = Header{}
	if len(seg) < TaggedHeaderLen {
		return nil, FaultLocal
	}
	c := seg[0]
	h.Tagged, h.Last = c&bitTagged != 0, c&bitLast != 0
	h.Ctrl = seg[1]
	if h.Tagged {
		h.STag = binary.BigEndian.Uint32(seg[2:])
		h.TO = binary.BigEndian.Uint64(seg[6:])
		if c&maskVersion != Version {
			f = FaultTaggedVersion
		}
		return seg[TaggedHeaderLen:], f
	}
	if len(seg) < UntaggedHeaderLen {
		return nil, FaultLocal
	}
	h.Word = binary.BigEndian.Uint32(seg[2:])
	h.QN = binary.BigEndian.Uint32(seg[6:])
	h.MSN = binary.BigEndian.Uint32(seg[10:])
	h.MO = binary.BigEndian.Uint32(seg[14:])
	if c&maskVersion != Version {
		f = FaultUntaggedVersion
	}
	return seg[UntaggedHeaderLen:], f
}

// precedes reports whether seg is as long as first, a tagged segment whose header h is,
// and has the same header but for the TO, which is off bytes on.
func (h *Header) precedes(first, seg []byte, off int) bool {
	return len(seg) == len(first) &&
		binary.LittleEndian.Uint16(seg) == binary.LittleEndian.Uint16(first) &&
		binary.BigEndian.Uint32(seg[2:]) == h.STag &&
		binary.BigEndian.Uint64(seg[6:]) == h.TO+uint64(off)
}

// AppendHeader appends the header to b.
func AppendHeader(b []byte, h *Header) []byte {
	c := byte(Version)
	if h.Last {
		c |= bitLast
	}
	if h.Tagged {
		b = append(b, c|bitTagged, h.Ctrl)
		b = binary.BigEndian.AppendUint32(b, h.STag)
		return binary.BigEndian.AppendUint64(b, h.TO)
	}
	b = append(b, c, h.Ctrl)
	b = binary.BigEndian.AppendUint32(b, h.Word)
	b = binary.BigEndian.AppendUint32(b, h.QN)
	b = binary.BigEndian.AppendUint32(b, h.MSN)
	return binary.BigEndian.AppendUint32(b, h.MO)
}
