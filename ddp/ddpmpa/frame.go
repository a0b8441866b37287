package ddpmpa

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weftstack/weft/ddp"
)

// Keys of the startup frames (RFC 5044, Section 7.1.1).
const (
	keyRequest = "MPA ID Req Frame"
	keyReply   = "MPA ID Rep Frame"
)

// Sizes of the startup frames (RFC 5044, Section 7.1.1).
const (
	// FrameHeaderLen is the size of a startup frame without private data.
	FrameHeaderLen = 20
	// MaxPrivate bounds the private data, the enhanced data included.
	MaxPrivate = 512
)

// Revisions of MPA: that of RFC 5044, and that of RFC 6581.
const (
	Revision1 = 1
	Revision2 = 2
)

// Bits of the octet after the key.
const (
	bitMarkers  = 0x80 // M
	bitCRC      = 0x40 // C
	bitRejected = 0x20 // R
	bitEnhanced = 0x10 // S (RFC 6581, Section 6)
)

// Errors of startup. All but ErrPrivate close the TCP connection.
var (
	// ErrFrame is an improperly formatted startup frame. It wraps FaultFrame.
	ErrFrame = &frameError{"improperly formatted startup frame"}
	// ErrRevision is a startup frame of a revision that is not known.
	ErrRevision = &frameError{"unknown revision"}
	// ErrSameMode is a request where a reply should be, or the other way
	// round: both sides initiate (RFC 5044, Section 7.1.2, rule 8).
	ErrSameMode = &frameError{"both sides are in the same mode"}
	// ErrNoReply is a TCP connection that the responder closed before its
	// reply: it may be one that knows revision 1 only (RFC 6581, Section 10).
	// It wraps FaultLost.
	ErrNoReply = fmt.Errorf("ddpmpa: closed without a reply: %w", FaultLost)
	// ErrPrivate is returned for private data over MaxPrivate.
	ErrPrivate = errors.New("ddpmpa: private data too long")
)

type frameError struct{ text string }

// Error implements error.
func (e *frameError) Error() string { return "ddpmpa: " + e.text }

// Unwrap returns FaultFrame.
func (e *frameError) Unwrap() error { return FaultFrame }

// Frame is an MPA Request or Reply Frame. Private aliases what it was parsed
// from.
type Frame struct {
	// Reply tells a reply from a request. Rejected is valid for a reply.
	Reply, Rejected bool
	// Markers declares that the sender of the frame requires markers in what
	// it receives, CRC that it wants CRCs.
	Markers, CRC bool
	// Revision is 1 or 2.
	Revision uint8
	// IsEnhanced tells that Enhanced is valid: of revision 2 only.
	IsEnhanced bool
	Enhanced   ddp.Enhanced
	// Private is the private data without the enhanced data.
	Private []byte
}

// AppendFrame appends the frame to b. Private must not be too long.
func AppendFrame(b []byte, f *Frame) []byte {
	key, bits, n := keyRequest, byte(0), len(f.Private)
	if f.Reply {
		key = keyReply
		if f.Rejected {
			bits |= bitRejected
		}
	}
	if f.Markers {
		bits |= bitMarkers
	}
	if f.CRC {
		bits |= bitCRC
	}
	if f.IsEnhanced {
		bits |= bitEnhanced
		n += ddp.EnhancedLen
	}
	b = append(b, key...)
	b = append(b, bits, f.Revision)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	if f.IsEnhanced {
		b = ddp.AppendEnhanced(b, f.Enhanced)
	}
	return append(b, f.Private...)
}

// ParseFrame reads the frame at the start of b, which must be a reply or a
// request as the caller wants. n is its size, or, with ok false and no error,
// how much of it must be there to go on.
func ParseFrame(b []byte, reply bool) (f Frame, n int, ok bool, err error) {
	want, other := keyRequest, keyReply
	if reply {
		want, other = other, want
	}
	if k := b[:min(len(b), len(want))]; string(k) != want[:len(k)] {
		// A connection that talks something else is found out at once.
		if string(k) == other[:len(k)] {
			return f, 0, false, ErrSameMode
		}
		return f, 0, false, ErrFrame
	}
	if len(b) < FrameHeaderLen {
		return f, FrameHeaderLen, false, nil
	}
	bits, size := b[16], int(binary.BigEndian.Uint16(b[18:]))
	f = Frame{Reply: reply, Rejected: reply && bits&bitRejected != 0, Markers: bits&bitMarkers != 0,
		CRC: bits&bitCRC != 0, Revision: b[17]}
	switch {
	case f.Revision != Revision1 && f.Revision != Revision2:
		return f, 0, false, ErrRevision
	case size > MaxPrivate:
		return f, 0, false, ErrFrame
	}
	n = FrameHeaderLen + size
	if len(b) < n {
		return f, n, false, nil
	}
	f.Private = b[FrameHeaderLen:n:n]
	// In revision 1 the bit is a reserved one, "not checked on reception".
	if f.Revision >= Revision2 && bits&bitEnhanced != 0 {
		if f.Enhanced, f.IsEnhanced = ddp.ParseEnhanced(f.Private); !f.IsEnhanced {
			return f, 0, false, ErrFrame
		}
		f.Private = f.Private[ddp.EnhancedLen:]
	}
	return f, n, true, nil
}
