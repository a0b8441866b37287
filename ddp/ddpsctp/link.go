package ddpsctp

import (
	"time"

	"github.com/weftstack/weft/ddp"
)

// Link is what an Association needs of the layer below, an SCTP association or another one with its properties:
// messages on numbered streams arrive once, whole and in any order; their sender is told when. Its methods do not
// block.
type Link interface {
	// Control sends a control message (PPIDControl), which it references until owner.Released.
	Control(sid uint16, msg []byte, owner ddp.Owner) error
	// Segments is ddp.Channel's Send, on a stream, whose sequence numbers are in the frames.
	Segments(sid uint16, segs []ddp.Segment) (int, error)
	// SendSegmented is the same for a batch, whose first segment has the number ssn.
	SendSegmented(sid, ssn uint16, t *ddp.Train) error
	// Hold counts n bytes, or fewer, that came on a stream against the receive window.
	Hold(sid uint16, n int)
	// MaxPayload is the size of the largest message that fits a packet.
	MaxPayload() int
	// Tags are numbers of the two sides, different ones, that both know.
	Tags() (local, peer uint32)
	// Abort ends the association, and tells the peer why. Association.Down follows, not within this call.
	Abort(reason string)
	// Admit ends the probation of the peer: consumers of both sides have agreed. ExtendProbation gives it more time;
	// a negative one is as long as it takes.
	Admit()
	ExtendProbation(d time.Duration)
}
