package rdmap

import (
	"encoding/binary"
	"fmt"

	"github.com/weftstack/weft/ddp"
)

// Header control bits of a Terminate message, in the third octet (RFC 5040,
// Section 4.8, Figure 8).
const (
	bitM = 0x80 // DDP segment length valid
	bitD = 0x40 // DDP header included
	bitR = 0x20 // RDMAP header included
)

// MaxTerminate is the size of the largest Terminate header: the control word,
// the segment length, an untagged DDP header and a Read Request header.
const MaxTerminate = 4 + 2 + ddp.UntaggedHeaderLen + ReadRequestLen

// TerminateHeader is the header of a Terminate message (RFC 5040, Section
// 4.8). It is a value: nothing in it aliases a message.
type TerminateHeader struct {
	Fault ddp.Fault
	// HasLength tells that SegmentLength is valid (M).
	HasLength     bool
	SegmentLength uint16
	// HasDDP tells that DDP is the header of the segment at fault (D).
	// DDPOdd has the bits in which its first octet differs from what it should
	// be: another version, reserved bits.
	HasDDP bool
	DDP    ddp.Header
	DDPOdd uint8
	// HasRead tells that Read is the Read Request at fault, as far as it was
	// not answered (R).
	HasRead bool
	Read    ReadRequestHeader
	// Reversed tells that the peer had the bits of the first word the wrong
	// way round, which was put right: see ParseTerminate.
	Reversed bool
}

// AppendTerminate appends the header to b.
func AppendTerminate(b []byte, t *TerminateHeader) []byte {
	var bits byte
	if t.HasLength {
		bits |= bitM
	}
	if t.HasDDP {
		bits |= bitD
	}
	if t.HasRead {
		bits |= bitR
	}
	b = append(b, byte(t.Fault>>8), byte(t.Fault), bits, 0)
	if t.HasDDP {
		// "It MUST be present when the D bit is set."
		b = binary.BigEndian.AppendUint16(b, t.SegmentLength)
		at := len(b)
		b = ddp.AppendHeader(b, &t.DDP)
		b[at] ^= t.DDPOdd
	}
	if t.HasRead {
		b = AppendReadRequest(b, &t.Read)
	}
	return b
}

// setDDP sets DDP and DDPOdd from a segment. It reports false if that is too
// short; a header with another version is what an error may be about.
func (t *TerminateHeader) setDDP(seg []byte) bool {
	h, _, f := ddp.ParseHeader(seg)
	if f == ddp.FaultLocal {
		return false
	}
	var usual [ddp.UntaggedHeaderLen]byte
	ddp.AppendHeader(usual[:0], &h)
	t.HasDDP, t.DDP, t.DDPOdd = true, h, seg[0]^usual[0]
	return true
}

// reversed reports whether a first word is the one of Linux siw on processors
// that store the least significant octet first: there error type and layer have
// changed places, and so have M, D and R with reserved bits. Without any of
// those it shows by an error that does not exist the right way round; 2/0/05 to
// 2/0/07 may be 0/2/05 to 0/2/07 of such a peer.
func reversed(b []byte) bool {
	if b[2]&(bitM|bitD|bitR) != 0 {
		return false
	}
	return b[2]&7 != 0 || b[0] == 0x02 && b[1] < 5 || b[0] == 0x21
}

// ParseTerminate reads the header. It reports whether b is long enough for
// what its control bits announce. A header as Linux siw makes it, with the
// fields of the first word reversed, is understood.
func ParseTerminate(b []byte) (t TerminateHeader, ok bool) {
	if len(b) < 4 {
		return t, false
	}
	t.Fault = ddp.NewFault(b[0]>>4, b[0]&15, b[1])
	bits := b[2]
	if t.Reversed = reversed(b); t.Reversed {
		t.Fault = ddp.NewFault(b[0]&15, b[0]>>4, b[1])
		bits = bits&1<<7 | bits&2<<5 | bits&4<<3
	}
	t.HasLength, t.HasDDP, t.HasRead = bits&bitM != 0, bits&bitD != 0, bits&bitR != 0
	b = b[4:]
	if t.HasDDP {
		if len(b) < 2 {
			return t, false
		}
		t.SegmentLength = binary.BigEndian.Uint16(b)
		if !t.setDDP(b[2:]) {
			return t, false
		}
		b = b[2+t.DDP.Len():]
	} else {
		t.HasLength = false
	}
	if t.HasRead {
		if len(b) < ReadRequestLen {
			return t, false
		}
		t.Read, _ = ParseReadRequest(b[:ReadRequestLen])
	}
	return t, true
}

// TerminateError is the end of a stream by a Terminate message.
type TerminateError struct {
	// ByPeer tells that the peer sent it: it objects to something this side
	// sent. Otherwise this side sent it.
	ByPeer bool
	// Header is what the message says.
	Header TerminateHeader
}

// Error implements error.
func (e *TerminateError) Error() string {
	who := "sent"
	if e.ByPeer {
		who = "received"
	}
	return fmt.Sprintf("rdmap: terminate %s: %v%s", who, e.Header.Fault, e.Header.about())
}

// about says which message the Terminate message is about, if it does.
func (t *TerminateHeader) about() string {
	switch h := &t.DDP; {
	case t.HasRead:
		return fmt.Sprintf(", read of %d bytes of STag %#x at %#x", t.Read.Size, t.Read.SrcSTag, t.Read.SrcTO)
	case t.HasDDP && h.Tagged:
		return fmt.Sprintf(", STag %#x at %#x", h.STag, h.TO)
	case t.HasDDP:
		return fmt.Sprintf(", message %d of queue %d", h.MSN, h.QN)
	}
	return ""
}

// Unwrap returns the ddp.Fault of the message.
func (e *TerminateError) Unwrap() error { return e.Header.Fault }
