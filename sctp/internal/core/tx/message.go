package tx

import (
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Owner is told when the queue needs a message no longer.
type Owner interface {
	// Released is called once per message by the driver, never by this package:
	// with nil when every byte was acknowledged, with ErrAbandoned, or with the
	// error that ended the association.
	Released(err error)
}

// Message is a user message to be sent.
type Message struct {
	SID  uint16
	PPID uint32
	// Unordered asks for delivery out of order (RFC 9260, Section 6.6).
	Unordered bool
	// Immediate asks the peer not to delay the SACK (RFC 7053).
	Immediate bool
	// Force takes the message even when the send buffer is full.
	Force bool
	// Header goes before Body; it is copied. At most MaxHeader bytes.
	Header []byte
	// Body is referenced until Owner is released and must not change till then. SetRuns gives a
	// message several.
	Body     []byte
	runs     [][]byte // in place of Body, see SetRuns
	runBytes int64    // in all of them
	// Owner may be nil.
	Owner Owner
	// Borrowed means that Body is referenced only until EndBorrow is called. There is no Owner
	// then, and no other message that is borrowed. Until EndBorrow is called new data is sent by
	// PollTransmitRetained only.
	Borrowed bool
	// SegmentSize, if not 0, makes this a segmented send: a batch of unordered messages that
	// each have so many bytes of Body, the last what is left, and in front of them its part of
	// Headers, which has the same length for all. Headers are referenced as Body is.
	SegmentSize int
	Headers     []byte
	// Of, if not nil, makes this a piece of that message, which goes on with
	// other pieces of the same SID, PPID and Unordered if this is not the Last.
	Of   *OpenMessage
	Last bool
	// Remote, if valid, is the address of the peer's to which the message goes
	// when it is sent first, if data can be sent there.
	Remote netip.AddrPort
	// Keyed has the packets of the message authenticated with the key Key (RFC
	// 6458, Section 5.3.8).
	Keyed bool
	Key   uint16
	route route // set by Via and WithKey

	// Lifetime, if not 0, is how long the message is worth sending, counted
	// from Send. A message of which nothing was sent is then dropped; one that
	// was is abandoned if the peer supports partial reliability (RFC 3758,
	// Section 4.1).
	Lifetime clock.Time
	// LimitRtx abandons the message when a chunk of it would be retransmitted
	// more than MaxRtx times (RFC 7496, Section 3.1).
	LimitRtx bool
	MaxRtx   uint32
	// Droppable lets the message be abandoned to make room in a full buffer for
	// one of a smaller Priority value (RFC 7496, Section 3.2: zero is the
	// highest priority).
	Droppable bool
	Priority  uint32
}

// Release tells that the message of Owner is done with. See [Owner].
type Release struct {
	Owner Owner
	Err   error
}

// ClearRoute has the message demand no path and no key.
func (m *Message) ClearRoute() { m.route = 0 }

// Via has the message demand path i, and no key.
func (m *Message) Via(i int) { m.route = routeVia(i) }

// WithKey has the message demand the key as well.
func (m *Message) WithKey(key uint16) { m.route |= routeKeyed | route(key)<<routeKeyShift }
