package sctp

import (
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// MaxHeader is the largest SendOptions.Header.
const MaxHeader = 64

// SendOwner owns a message that was sent by reference.
type SendOwner interface {
	// Released is called exactly once, with no lock held, when the stack no longer reads the
	// message, and the memory belongs to the caller again: err is nil when the peer has
	// acknowledged all of it, ErrExpired when it was abandoned, ErrRestart when the peer has
	// restarted, otherwise why the association ended. It must not block; it may send with
	// TrySend or Force.
	Released(err error)
}

// PRPolicy selects a partial reliability policy (RFC 3758, RFC 7496).
type PRPolicy uint8

// Partial reliability policies.
const (
	// Reliable messages are retransmitted until acknowledged. With a
	// Lifetime they are dropped if no part was sent within it.
	Reliable PRPolicy = iota
	// Timed messages are abandoned when Lifetime has passed (RFC 3758,
	// Section 4.1).
	Timed
	// LimitedRetransmissions messages are abandoned when a chunk of them was
	// retransmitted more than MaxRetransmits times (RFC 7496, Section 3.1).
	LimitedRetransmissions
	// Prioritized messages are abandoned, largest Priority value first, when
	// the send buffer is full (RFC 7496, Section 3.2).
	Prioritized
)

// SendOptions describes one message. The zero value is a reliable ordered
// message on stream 0. A message has at least one byte: SCTP cannot carry an
// empty one.
type SendOptions struct {
	// Stream is the outgoing stream.
	Stream uint16
	// PPID is the payload protocol identifier, which the peer gets unchanged (RFC 9260,
	// Section 3.3.1).
	PPID uint32
	// Unordered messages overtake others of their stream.
	Unordered bool
	// Immediate asks the peer to acknowledge at once (RFC 7053).
	Immediate bool
	// Header, at most MaxHeader bytes, is copied and sent in front of the
	// message, as part of it.
	Header []byte
	// Owner, if not nil, makes the stack reference the message instead of
	// copying it: the bytes must not change until Owner.Released. If the send
	// itself returns an error, Released is not called.
	Owner SendOwner
	// More tells that another send follows at once: nothing is transmitted for this one yet,
	// as with MSG_MORE. The last send of a sequence must not set it; Association.Flush
	// transmits what waits.
	More bool
	// Force queues the message even if the send buffer is full, so the send
	// never waits; bounding memory is then the caller's duty.
	Force bool
	// PR is the partial reliability policy; the three fields below are its
	// parameters. It needs the peer's support, else messages are reliable.
	PR             PRPolicy
	Lifetime       time.Duration
	MaxRetransmits int
	Priority       uint32
	// Remote, if valid, is the address of the peer's that the message is sent to
	// (RFC 6458, Section 5.3.4, SCTP_ADDR_OVER) in place of that of
	// Association.SetPrimary or Config.Multipath; ErrAddress is returned if it is
	// not the peer's. Another one takes its place while it is not confirmed, inactive
	// or potentially failed, and for retransmissions. Messages are sent in the
	// order of the scheduler: one that has to wait for the congestion window of its
	// path holds up those behind it.
	Remote netip.AddrPort
	// With UseAuthKey the message is authenticated with the shared key AuthKey (RFC
	// 6458, Section 5.3.8, SCTP_AUTHINFO) rather than with the one of
	// Association.UseAuthKey, also when it is sent again; messages with different
	// keys do not share a packet. ErrNoKey is returned if there is no such key, and
	// ErrNotSupported if the peer did not ask for user messages to be
	// authenticated (see Association.AuthChunks), or is not known yet.
	UseAuthKey bool
	AuthKey    uint16
}

// RecvInfo describes what a receive returned.
type RecvInfo struct {
	// Association is where the bytes came from.
	Association *Association
	Stream      uint16
	// SSN is the stream sequence number of a DATA message, MID the message
	// identifier of an I-DATA message; the other one is 0.
	SSN  uint16
	MID  uint32
	PPID uint32
	// TSN is that of the first fragment returned.
	TSN       uint32
	Unordered bool
	// Message is unique to the message within its association; Offset is where
	// in the message the bytes begin.
	Message, Offset uint64
	// EOR tells that the receive reached the end of the message. Without it
	// the buffer was too small and the next receive on the same stream
	// continues the message; or the message is being delivered in part
	// because it fills the receive buffer.
	EOR bool
	// Aborted tells that the rest of a message that was received in part will
	// never come (RFC 3758). EOR is set, and there are no bytes.
	Aborted bool
}

// Piece is a message fragment in upcall mode: consecutive bytes of one message. Those of
// ordered messages of a stream come in order and contiguous. With user message interleaving
// (RFC 8260) fragments of messages on different streams, and of unordered ones, may alternate:
// Message tells them apart.
type Piece struct {
	Stream uint16
	// SSN is the stream sequence number of a DATA message, MID the message
	// identifier of an I-DATA message; the other one is 0.
	SSN  uint16
	MID  uint32
	PPID uint32
	TSN  uint32
	// Begin and End mark the first and the last message fragment of a message.
	Unordered, Begin, End bool
	// Aborted tells that the rest of a message that was begun will never come.
	// End is set, and there are no bytes.
	Aborted bool
	// Message is unique to the message within its association; Offset is where
	// in the message Data begins.
	Message, Offset uint64
	// Data aliases the receive buffer. It is valid until OnPiece returns for this
	// message fragment or, with More, for the first one behind it that is without, or as long
	// as a Lease of it is held, and must not be written to.
	Data []byte
	// More tells that OnPiece is called again, for another message fragment of the
	// association, as soon as it returns: what is done for several message fragments at once
	// can wait for that.
	More bool

	buf *slab.Buf
}

// Lease keeps the Data of a Piece valid beyond the return of OnPiece, until Release. The zero
// Lease holds nothing.
type Lease struct{ buf *slab.Buf }

// Lease takes a lease of p.Data; it may only be called in OnPiece. It reports false if the
// bytes cannot be leased, as with small message fragments: the caller has to copy them. A lease
// pins up to 64 KiB and does not count against the receive buffer: the caller has to bound the
// number of leases.
func (p *Piece) Lease() (Lease, bool) {
	if p.buf == nil {
		return Lease{}, false
	}
	p.buf.Retain()
	return Lease{p.buf}, true
}

// Release ends the lease, on any goroutine. It must be called once; on the zero Lease it does
// nothing.
func (l Lease) Release() {
	if l.buf != nil {
		l.buf.Release()
	}
}
