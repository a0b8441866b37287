package verbs

import "github.com/weftstack/weft/rdmap"

// Opcode is the operation of a SendWR.
type Opcode = rdmap.OpKind

// Operations of the send queue.
const (
	// OpSend sends SGL to the next receive work request of the peer.
	OpSend = rdmap.OpSend
	// OpSendInvalidate is OpSend that also revokes the region with STag
	// Invalidate at the peer, before its receive completes.
	OpSendInvalidate = rdmap.OpSendInvalidate
	// OpWrite writes SGL to Remote.
	OpWrite = rdmap.OpWrite
	// OpWriteImm is OpWrite followed by OpImm, with one completion.
	OpWriteImm = rdmap.OpWriteImm
	// OpImm sends the 8 octets of Imm; it consumes a receive work request of
	// the peer without touching its buffer (RFC 7306, Section 6).
	OpImm = rdmap.OpImm
	// OpRead reads from Remote as many bytes as SGL has room for. A read is not
	// atomic: of memory that its owner, or another peer, changes at the same time
	// it gets parts from before and after the change. They come in any order,
	// since what is lost on the way is read again to be repeated, unless the
	// region was registered with ReadSnapshot. So a version at both ends of the
	// memory tells nothing about what is between without that.
	OpRead = rdmap.OpRead
	// OpFetchAdd and OpCompareSwap are the atomic operations of RFC 7306,
	// Section 5, on the 8 aligned bytes at Remote, in the byte order of the
	// target's processor. The original value is stored to the 8 bytes SGL
	// names, in the byte order of this processor.
	OpFetchAdd    = rdmap.OpFetchAdd
	OpCompareSwap = rdmap.OpCompareSwap
	// OpLocalInvalidate revokes the local region or window with STag
	// Invalidate, in order with the work requests around it. When it has
	// completed no peer can change the memory. Failure ends the queue pair.
	OpLocalInvalidate = rdmap.OpLocalInvalidate
	// OpBindMW binds a memory window, OpFastRegister registers memory with a
	// region of PD.AllocMR, as Bind says, in order with the work requests
	// around it: a send after it may advertise the STag. Failure ends the queue
	// pair.
	OpBindMW       = rdmap.OpBind
	OpFastRegister = rdmap.OpRegister
)

// Flags modify a SendWR.
type Flags = rdmap.OpFlags

// Flags of a SendWR.
const (
	// Signaled asks for a completion; without it only an error makes one
	// (and all is signaled with QPConfig.SignalAll).
	Signaled = rdmap.FlagSignaled
	// Solicited makes the peer's completion a solicited event.
	Solicited = rdmap.FlagSolicited
	// Fence delays the work request until all earlier reads and atomics of
	// this queue pair have completed (RFC 5040, Section 5.5, rule 12).
	Fence = rdmap.FlagFence
)

// SGE is one element of a scatter/gather list: Len bytes at Off of a region.
// See MR.Slice.
type SGE struct {
	MR       *MR
	Off, Len int
}

// RemoteBuf names memory at the peer, as advertised by its owner: see
// MR.Remote.
type RemoteBuf struct {
	STag uint32
	TO   uint64
	Len  uint64
}

// At returns the buffer that begins off bytes into b. It does not check that
// there is such a place; the peer will.
func (b RemoteBuf) At(off uint64) RemoteBuf {
	return RemoteBuf{STag: b.STag, TO: b.TO + off, Len: b.Len - off}
}

// Bind says what an OpBindMW or OpFastRegister does. The STag is valid on the
// queue pair it is posted to, and its peer may invalidate it
// (OpSendInvalidate).
type Bind struct {
	// MW is the window that OpBindMW binds, to Len bytes at Off of MR, which
	// was registered with MWBind.
	MW       *MW
	Off, Len int
	// MR is that region or, for OpFastRegister, the one of PD.AllocMR that is
	// to stand for Buf.
	MR  *MR
	Buf []byte
	// Base is the tagged offset of the first byte.
	Base uint64
	// Access are the remote rights. Windows with RemoteWrite or RemoteAtomic
	// need a region with LocalWrite. OpFastRegister may add ReadSnapshot.
	Access Access
}

// SendWR is a work request of the send queue. PostSend copies it, but the
// memory of SGL belongs to the queue pair until the work request, or a later
// one of the same queue, has completed: it is read again to repeat what was lost,
// so what changes before arrives in parts. What an OpRead reads at the peer may
// arrive in parts, too: see there.
type SendWR struct {
	// ID is given back in the completion.
	ID uint64
	// Op and Flags tell what to do; the fields below are used as Op needs.
	Op    Opcode
	Flags Flags
	// SGL is the local memory.
	SGL []SGE
	// Inline, if not nil, is used instead of SGL by sends and writes: at most
	// QPConfig.MaxInline bytes that need no registration and are copied by
	// PostSend.
	Inline []byte
	// Remote is the target of writes, reads and atomics. Its Len is not
	// used: the length is that of SGL or Inline.
	Remote RemoteBuf
	// Invalidate is the STag to invalidate.
	Invalidate uint32
	// Bind is for OpBindMW and OpFastRegister.
	Bind *Bind
	// Imm is the immediate data.
	Imm uint64
	// Operand is added (OpFetchAdd) or stored (OpCompareSwap). OperandMask
	// has the top bit of each independent field set for OpFetchAdd (0: one
	// 64-bit field) and the bits to store for OpCompareSwap.
	Operand, OperandMask uint64
	// Compare is compared under CompareMask (OpCompareSwap).
	Compare, CompareMask uint64
}

// RecvWR is a work request of the receive queue: a buffer for one message.
type RecvWR struct {
	ID  uint64
	SGL []SGE
}
