package rdmap

import (
	"encoding/binary"

	"github.com/weftstack/weft/ddp"
)

// Opcode is the opcode of an RDMAP message (RFC 5040, Section 4.1; RFC 7306,
// Section 4.1).
type Opcode uint8

// Opcodes.
const (
	Write           Opcode = 0x0
	ReadRequest     Opcode = 0x1
	ReadResponse    Opcode = 0x2
	Send            Opcode = 0x3
	SendInv         Opcode = 0x4
	SendSE          Opcode = 0x5
	SendSEInv       Opcode = 0x6
	Terminate       Opcode = 0x7
	Immediate       Opcode = 0x8
	ImmediateSE     Opcode = 0x9
	AtomicRequest   Opcode = 0xA
	AtomicResponse  Opcode = 0xB
	opcodeUndefined Opcode = 0xC
)

var opcodeNames = [...]string{"RDMA Write", "RDMA Read Request", "RDMA Read Response", "Send",
	"Send with Invalidate", "Send with SE", "Send with SE and Invalidate", "Terminate",
	"Immediate Data", "Immediate Data with SE", "Atomic Request", "Atomic Response"}

// String returns the name the RFCs use.
func (o Opcode) String() string {
	if o < opcodeUndefined {
		return opcodeNames[o]
	}
	return "undefined opcode"
}

// Untagged queue numbers (RFC 7306, Section 10.2).
const (
	QueueSend           = 0
	QueueReadRequest    = 1
	QueueTerminate      = 2
	QueueAtomicResponse = 3
)

// queue returns the untagged queue that an opcode uses, or -1 for tagged
// messages.
func (o Opcode) queue() int {
	switch o {
	case Send, SendInv, SendSE, SendSEInv, Immediate, ImmediateSE:
		return QueueSend
	case ReadRequest, AtomicRequest:
		return QueueReadRequest
	case Terminate:
		return QueueTerminate
	case AtomicResponse:
		return QueueAtomicResponse
	}
	return -1
}

// solicited and invalidates tell the variants of Send and Immediate apart.
func (o Opcode) solicited() bool   { return o == SendSE || o == SendSEInv || o == ImmediateSE }
func (o Opcode) invalidates() bool { return o == SendInv || o == SendSEInv }
func (o Opcode) immediate() bool   { return o == Immediate || o == ImmediateSE }

// Version is the RDMAP version sent; version 0, that of the RDMA Consortium,
// is accepted too (RFC 5040, Section 4.1: "Both version numbers are valid").
const Version = 1

// Control returns the RDMAP control octet of an opcode.
func Control(o Opcode) uint8 { return Version<<6 | uint8(o)&15 }

// ParseControl takes a control octet apart. Reserved bits are ignored.
func ParseControl(c uint8) (o Opcode, version uint8) { return Opcode(c & 15), c >> 6 }

// RDMAP faults (RFC 5040, Section 4.8, Figure 9).
const (
	FaultSTag            ddp.Fault = 0x0100
	FaultBounds          ddp.Fault = 0x0101
	FaultAccess          ddp.Fault = 0x0102
	FaultNotAssociated   ddp.Fault = 0x0103
	FaultWrap            ddp.Fault = 0x0104
	FaultCannotInval     ddp.Fault = 0x0109
	FaultVersion         ddp.Fault = 0x0205
	FaultOpcode          ddp.Fault = 0x0206
	FaultCatastrophic    ddp.Fault = 0x0207
	FaultGlobal          ddp.Fault = 0x0208
	FaultUnspecified     ddp.Fault = 0x02FF
	FaultInsufficientIRD ddp.Fault = 0x2006 // RFC 6581, Section 8
)

// protection returns the fault for a denied read or atomic request or remote
// invalidation.
func protection(d ddp.Denial) ddp.Fault {
	switch d {
	case ddp.Granted:
		return 0
	case ddp.DeniedStream:
		return FaultNotAssociated
	case ddp.DeniedAccess:
		return FaultAccess
	case ddp.DeniedWrap:
		return FaultWrap
	case ddp.DeniedBounds:
		return FaultBounds
	case ddp.DeniedAlignment:
		return FaultCatastrophic // RFC 7306, Section 8.2
	case ddp.DeniedInvalidate:
		return FaultCannotInval
	}
	return FaultSTag
}

// Sizes of the headers that follow the DDP header.
const (
	ReadRequestLen    = 28
	AtomicRequestLen  = 52
	AtomicResponseLen = 12
	ImmediateLen      = 8
)

// ReadRequestHeader is the header of RFC 5040, Section 4.4.
type ReadRequestHeader struct {
	SinkSTag uint32
	SinkTO   uint64
	Size     uint32
	SrcSTag  uint32
	SrcTO    uint64
}

// AppendReadRequest appends the header to b.
func AppendReadRequest(b []byte, h *ReadRequestHeader) []byte {
	b = binary.BigEndian.AppendUint32(b, h.SinkSTag)
	b = binary.BigEndian.AppendUint64(b, h.SinkTO)
	b = binary.BigEndian.AppendUint32(b, h.Size)
	b = binary.BigEndian.AppendUint32(b, h.SrcSTag)
	return binary.BigEndian.AppendUint64(b, h.SrcTO)
}

// ParseReadRequest reads the header. It reports whether b has its size.
func ParseReadRequest(b []byte) (h ReadRequestHeader, ok bool) {
	if len(b) != ReadRequestLen {
		return h, false
	}
	return ReadRequestHeader{
		SinkSTag: binary.BigEndian.Uint32(b),
		SinkTO:   binary.BigEndian.Uint64(b[4:]),
		Size:     binary.BigEndian.Uint32(b[12:]),
		SrcSTag:  binary.BigEndian.Uint32(b[16:]),
		SrcTO:    binary.BigEndian.Uint64(b[20:]),
	}, true
}

// Atomic operation codes (RFC 7306, Section 10.1).
const (
	AtomicFetchAdd = 0
	AtomicCmpSwap  = 2
)

// AtomicRequestHeader is the header of RFC 7306, Section 5.2.1.
type AtomicRequestHeader struct {
	Op          uint8
	ID          uint32
	STag        uint32
	TO          uint64
	Data, Mask  uint64 // to add or swap in
	Compare     uint64
	CompareMask uint64
}

// AppendAtomicRequest appends the header to b.
func AppendAtomicRequest(b []byte, h *AtomicRequestHeader) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(h.Op&15))
	b = binary.BigEndian.AppendUint32(b, h.ID)
	b = binary.BigEndian.AppendUint32(b, h.STag)
	b = binary.BigEndian.AppendUint64(b, h.TO)
	b = binary.BigEndian.AppendUint64(b, h.Data)
	b = binary.BigEndian.AppendUint64(b, h.Mask)
	b = binary.BigEndian.AppendUint64(b, h.Compare)
	return binary.BigEndian.AppendUint64(b, h.CompareMask)
}

// ParseAtomicRequest reads the header. It reports whether b has its size.
func ParseAtomicRequest(b []byte) (h AtomicRequestHeader, ok bool) {
	if len(b) != AtomicRequestLen {
		return h, false
	}
	return AtomicRequestHeader{
		Op:          b[3] & 15,
		ID:          binary.BigEndian.Uint32(b[4:]),
		STag:        binary.BigEndian.Uint32(b[8:]),
		TO:          binary.BigEndian.Uint64(b[12:]),
		Data:        binary.BigEndian.Uint64(b[20:]),
		Mask:        binary.BigEndian.Uint64(b[28:]),
		Compare:     binary.BigEndian.Uint64(b[36:]),
		CompareMask: binary.BigEndian.Uint64(b[44:]),
	}, true
}

// Apply returns what the operation makes of a value.
func (h *AtomicRequestHeader) Apply(old uint64) uint64 {
	if h.Op == AtomicCmpSwap {
		// RFC 7306, Section 5.1.2.
		if (h.Compare^old)&h.CompareMask != 0 {
			return old
		}
		return old&^h.Mask | h.Data&h.Mask
	}
	// Section 5.1.1: independent fields, the carry out of each bit set in the
	// mask is dropped. Add without the top bits of the fields, so that no
	// carry leaves a field, then add the top bits without carry.
	top := h.Mask
	return (old&^top + h.Data&^top) ^ (old^h.Data)&top
}

// AppendAtomicResponse appends the header of RFC 7306, Section 5.2.2: 12
// octets as in Figure 6 (the "32 bytes" of the text of Section 4 is a slip).
func AppendAtomicResponse(b []byte, id uint32, original uint64) []byte {
	b = binary.BigEndian.AppendUint32(b, id)
	return binary.BigEndian.AppendUint64(b, original)
}

// ParseAtomicResponse reads the header. It reports whether b has its size.
func ParseAtomicResponse(b []byte) (id uint32, original uint64, ok bool) {
	if len(b) != AtomicResponseLen {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:]), true
}
