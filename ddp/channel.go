package ddp

// Limits on what one stream may have under way.
const (
	// MaxOutstanding bounds the segments of a stream that are sent and not
	// acknowledged, and how far segments may overtake each other: RFC 5043,
	// Section 10 tells order from 16-bit numbers and so needs it below 32768.
	MaxOutstanding = 32767
	// DefaultWindow is how many segments a stream has outstanding unless told
	// otherwise: about 3 MB at an MTU of 1500.
	DefaultWindow = 2048
)

// Owner owns the memory of a sent segment and is called back when it is free again.
type Owner interface {
	// Released is called exactly once, with no lock of the lower layer held, when the
	// segment's Body is not read any more and the segment is no longer outstanding: it
	// was acknowledged (err is nil) or the stream ended (err is the reason). It may send.
	Released(err error)
}

// BatchOwner is an Owner with one callback for several segments.
type BatchOwner interface {
	Owner
	// ReleasedN is equivalent to n calls of Released.
	ReleasedN(n int, err error)
}

// ReleaseN releases n segments of o.
func ReleaseN(o Owner, n int, err error) {
	if b, ok := o.(BatchOwner); ok {
		b.ReleasedN(n, err)
		return
	}
	for range n {
		o.Released(err)
	}
}

// Channel is the sending direction of one stream of the lower layer protocol, with the
// properties that RFC 5041, Section 3 requires.
type Channel interface {
	// MULPDU returns the size of the largest segment that can be sent now.
	MULPDU() int
	// Send sends segments in order, at once: it does not cork the last packet for later
	// segments. It copies the frames and references each Body until Owner.Released. It
	// does not block. It returns the number of segments taken, which may be less than all
	// after an error; Released is not called for the rest. Calls for one stream must not
	// overlap.
	Send(segs []Segment) (int, error)
	// Terminate sends the end of this direction behind all segments sent before. It is
	// called at most once, and not concurrently with Send.
	Terminate() error
	// Release ends the use of the channel by the stream: nothing is outstanding and the
	// end of the peer's direction was received, or the stream has given up on either.
	Release()
}

// Sink is the receiving direction of one stream. The lower layer calls it, one call at a
// time. Sequence numbers count the messages of the peer on the stream from 0, including
// those of the lower layer itself; calls may come in any order. An error is [ErrSequence],
// or one after which the stream is unusable.
type Sink interface {
	// Segment takes a segment. It does not keep seg.
	Segment(seq uint64, seg []byte) error
	// Segments takes several segments, numbered from first on. It is equivalent to calls
	// of Segment up to the first error.
	Segments(first uint64, segs [][]byte) error
	// Skip takes the number of a message of the lower layer itself.
	Skip(seq uint64) error
	// End takes the number of the message that ends the peer's direction.
	End(seq uint64) error
	// Lost reports that the lower layer ended, with the reason: nothing can be sent or
	// received any more. It may be called at any time.
	Lost(err error)
}

// Holder is a Channel with flow control for data that the receiving side keeps because it
// cannot be delivered yet: the channel reduces the peer's receive window by these bytes.
// Segments that are already under way, and retransmissions, still arrive.
type Holder interface {
	// Hold adds n bytes, which may be negative, to the kept ones. It does not block.
	Hold(n int)
}

// Headroom is the room in front of the DDP header in Segment.Frame for the
// lower layer's own prefix.
const Headroom = 2

// maxFrame is the largest frame: what SCTP sends take as a copied header.
const maxFrame = 64

// Segment is one DDP segment on its way to a Channel.
type Segment struct {
	frame [maxFrame]byte
	n     int
	// Body is the part of the payload that is referenced, not copied.
	Body []byte
	// Owner is called when the segment is released. It is never nil.
	Owner Owner
	// Urgent requests an immediate acknowledgement (RFC 7053) where the lower layer can.
	Urgent bool
}

// Frame returns Headroom free bytes, the DDP header, and the first bytes of
// the payload if that was short. It is valid until the segment is used again.
func (s *Segment) Frame() []byte { return s.frame[:s.n] }

// Len returns the size of the segment without Headroom.
func (s *Segment) Len() int { return s.n - Headroom + len(s.Body) }

// AppendTo appends header and payload to b, for channels that copy.
func (s *Segment) AppendTo(b []byte) []byte {
	b = append(b, s.frame[Headroom:s.n]...)
	return append(b, s.Body...)
}
