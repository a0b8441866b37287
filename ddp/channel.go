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

// Owner owns the memory of a sent segment.
type Owner interface {
	// Released is called exactly once, with no lock of the lower layer held,
	// when the segment's Body is no longer read and the segment does not
	// count as outstanding any more. It may send.
	Released(err error)
}

// BatchOwner is an Owner that can be told of several segments at once.
type BatchOwner interface {
	Owner
	// ReleasedN stands for n calls of Released.
	ReleasedN(n int, err error)
}

// ReleaseN tells o that n of its segments are done with.
func ReleaseN(o Owner, n int, err error) {
	if b, ok := o.(BatchOwner); ok {
		b.ReleasedN(n, err)
		return
	}
	for range n {
		o.Released(err)
	}
}

// Channel is what DDP needs of the lower layer for one stream (RFC 5041,
// Section 3), in the sending direction.
type Channel interface {
	// MULPDU returns the size of the largest segment that can be sent now.
	MULPDU() int
	// Send hands over segments, in order: no more follow at once, so nothing
	// waits for others to join it. It copies the frames, references each Body
	// until its Owner.Released, and does not block. It returns how many were
	// taken: after an error that may be less than all, and Released is not
	// called for the rest. Sends of one stream are made one at a time.
	Send(segs []Segment) (int, error)
	// Terminate tells the peer that no segment follows those handed over
	// before. It is called at most once, and not at the same time as Send.
	Terminate() error
	// Release tells that the stream makes no further use of the channel:
	// nothing it sent is outstanding, and the peer's end was received (or
	// either is past hoping for).
	Release()
}

// Sink is the receiving direction: what the lower layer calls for one stream,
// one call at a time. Sequence numbers count what the peer sent on the
// stream, from 0, including the lower layer's own messages; calls come in any
// order. An error is ErrSequence, or one for which the stream is beyond use.
type Sink interface {
	// Segment takes a segment, which is not kept.
	Segment(seq uint64, seg []byte) error
	// Segments takes several, numbered from first on, as so many calls of Segment
	// would up to the first that returns an error.
	Segments(first uint64, segs [][]byte) error
	// Skip takes the number of a message of the lower layer itself.
	Skip(seq uint64) error
	// End takes the number of the message that ends the peer's direction.
	End(seq uint64) error
	// Lost tells that the lower layer is gone, and why. Nothing can be sent
	// and nothing will be received. It may be called at any time.
	Lost(err error)
}

// Holder is a Channel that is told how much memory the receiving side has for what it
// was handed and cannot be delivered yet: it keeps the peer from sending more than
// there is room for. What the peer has sent already, and what it sends again because it
// was lost, still comes.
type Holder interface {
	// Hold adds n, which may be negative, to the number of bytes held. It does not block.
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
	// Owner is told when the segment is done with. It is never nil.
	Owner Owner
	// Urgent asks the lower layer to have the peer acknowledge at once.
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
