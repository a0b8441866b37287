package rdmap

import (
	"sync/atomic"

	"github.com/weftstack/weft/ddp"
)

// OpKind is the kind of an operation of the send queue.
type OpKind uint8

// Operations.
const (
	// OpSend sends a message.
	OpSend OpKind = iota + 1
	// OpSendInvalidate sends a message and invalidates an STag of the peer.
	OpSendInvalidate
	// OpWrite writes to a tagged buffer of the peer.
	OpWrite
	// OpWriteImm is OpWrite and then OpImm.
	OpWriteImm
	// OpImm sends 8 octets of immediate data.
	OpImm
	// OpRead reads from a tagged buffer of the peer.
	OpRead
	// OpFetchAdd and OpCompareSwap are atomic operations on 8 bytes at the
	// peer.
	OpFetchAdd
	OpCompareSwap
	// OpLocalInvalidate revokes an STag of this side.
	OpLocalInvalidate
	// OpBind gives a region of this side, made by ddp.Table.Reserve, memory and
	// rights, for the peer of this stream: a memory window, or fast
	// registration. SGL is the memory, with the parent region if there is one,
	// and then the region alone; TO is the tagged offset of its first byte.
	OpBind
	// OpRegister is OpBind under another name: memory that has no parent.
	OpRegister
	opKinds
)

var opNames = [opKinds]string{"none", "send", "send with invalidate", "write", "write with immediate",
	"immediate", "read", "fetch-add", "compare-swap", "local invalidate", "bind", "register"}

// String returns a short lower-case name.
func (k OpKind) String() string {
	if k < opKinds {
		return opNames[k]
	}
	return "unknown operation"
}

// Responds reports whether the operation is answered by the peer: reads and
// atomics, which IRD and ORD count.
func (k OpKind) Responds() bool { return k == OpRead || k == OpFetchAdd || k == OpCompareSwap }

// OpFlags modify an operation.
type OpFlags uint8

// Flags of an operation.
const (
	// FlagSignaled asks for a completion even of success.
	FlagSignaled OpFlags = 1 << iota
	// FlagSolicited asks for a solicited event at the peer.
	FlagSolicited
	// FlagFence waits for all earlier reads and atomics of the stream.
	FlagFence
)

// Work describes an operation; Kind determines which fields are used.
type Work struct {
	ID    uint64
	Kind  OpKind
	Flags OpFlags
	// SGL is the local memory. Inline, which has room for Config.MaxInline
	// bytes, is used instead if it is not empty. Both slices belong to the
	// queue and are to be appended to.
	SGL    []ddp.Mem
	Inline []byte
	// STag and TO name the peer's memory.
	STag uint32
	TO   uint64
	// Invalidate is the STag that OpSendInvalidate or OpLocalInvalidate
	// invalidates.
	Invalidate uint32
	// Access are the rights that OpBind gives.
	Access ddp.Access
	// Imm is the immediate data.
	Imm uint64
	// Data, Mask, Compare and CompareMask are those of the atomic operations.
	Data, Mask, Compare, CompareMask uint64
}

// Op is one entry of a stream's send queue. Stream.NextOp hands it out to have
// its Work filled in.
type Op struct {
	Work

	stream *Stream
	inl    [1]ddp.Mem // Inline as a list
	size   uint32     // bytes to send or read
	status Status
	second bool        // the Write of an OpWriteImm has been sent
	begun  bool        // its message, or the first of two, is being sent or was
	qn     uint32      // queue number of its untagged message, if that has begun
	msn    uint32      // message sequence number of the same
	done   atomic.Bool // nothing more to do but wait for refs to go
	refs   atomic.Int32

	pos    uint64 // reads: where the sink begins in the stream's sink space
	placed uint32 // reads: bytes of the response placed
}

// Released implements ddp.Owner for the segments that reference SGL.
func (o *Op) Released(err error) { o.ReleasedN(1, err) }

// ReleasedN implements ddp.BatchOwner.
func (o *Op) ReleasedN(n int, err error) {
	s := o.stream
	if err != nil {
		// It is not known to have arrived.
		s.mu.Lock()
		if o.status == StatusSuccess {
			o.status = StatusFlush
		}
		s.mu.Unlock()
	}
	if o.refs.Add(int32(-n)) == 0 && o.done.Load() {
		s.mu.Lock()
		s.reap()
		s.mu.Unlock()
	}
	s.credit(n)
}

// Status is the result of an operation.
type Status uint8

// Statuses.
const (
	// StatusSuccess: done.
	StatusSuccess Status = iota
	// StatusFlush: the stream ended before it was done.
	StatusFlush
	// StatusLocalLength: a message did not fit the receive buffer.
	StatusLocalLength
	// StatusLocalProtection: local memory was not usable.
	StatusLocalProtection
	// StatusLocalOperation: the operation is not possible on this stream.
	StatusLocalOperation
	// StatusBadResponse: the response was not what was asked for.
	StatusBadResponse
	// StatusRemoteAccess: the peer objected to STag, bounds or rights.
	StatusRemoteAccess
	// StatusRemoteOperation: the peer objected for another reason.
	StatusRemoteOperation
	// StatusBind: the region of an OpBind has rights, or is gone, or its
	// memory is.
	StatusBind
)

var statusNames = [...]string{"success", "flushed", "local length error", "local protection error",
	"local operation error", "bad response", "remote access error", "remote operation error", "bind error"}

// String returns a short lower-case name.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown status"
}

// CompletionFlags are properties of a received message.
type CompletionFlags uint8

// Flags of a received message.
const (
	// CompletionImm: it carries immediate data.
	CompletionImm CompletionFlags = 1 << iota
	// CompletionInvalidate: it invalidated an STag.
	CompletionInvalidate
	// CompletionSolicited: the peer asked for a solicited event.
	CompletionSolicited
)

// Completion is the end of a send or receive operation.
type Completion struct {
	ID          uint64
	Kind        OpKind // of a send operation
	Status      Status
	Flags       CompletionFlags
	Len         uint32
	Imm         uint64
	Invalidated uint32
}
