package reconfig

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// Sender is the sending side of an association: its outgoing streams and their TSNs.
type Sender interface {
	// Streams returns how many outgoing streams there are, and SetStreams changes that.
	Streams() int
	SetStreams(n int)
	// NextTSN returns the TSN that is assigned next.
	NextTSN() seq.TSN
	// ResetTSN makes next the TSN that is assigned next, if nothing is outstanding. It
	// reports whether it did.
	ResetTSN(next seq.TSN) bool
	// Idle reports whether nothing is outstanding, nothing may be sent and no message has
	// begun.
	Idle() bool
	// Drained reports whether all is acknowledged that a paused stream may send.
	Drained(sid uint16) bool
	// Fresh reports whether the next message of each stream, all if sids is empty, has
	// number 0 without a reset.
	Fresh(sids []uint16) bool
	// ResetStreams restarts the numbers of streams, all if sids is empty.
	ResetStreams(sids []uint16)
	// Arrivals returns the arrival number of the next message that the user sends.
	Arrivals() uint64
	// Pause keeps messages of a stream from being sent whose arrival number is from or
	// later, unless it is paused already. PauseAll does so for all streams together.
	Pause(sid uint16, from uint64)
	PauseAll(from uint64)
	// Resume undoes Pause, and ResumeAll PauseAll; Reschedule lets them take effect.
	Resume(sid uint16)
	ResumeAll()
	Reschedule()
}

// Receiver is the receiving side of an association: the TSNs that came and reassembly.
// The methods with a result ok abort the association if it is false: what was held back
// violates the protocol.
type Receiver interface {
	// Streams returns how many incoming streams there are, and SetStreams changes that.
	Streams() int
	SetStreams(n int)
	// CumTSN returns the cumulative TSN, and Highest the highest that came.
	CumTSN() seq.TSN
	Highest() seq.TSN
	// ForceSack has a SACK sent at once. Refuse notes that a chunk was not taken in.
	ForceSack()
	Refuse()
	// ResetStreams restarts the numbers of streams, all if sids is empty.
	ResetStreams(sids []uint16) (ok bool)
	// DeferReset holds back data of streams, all if sids is empty, beyond TSN last, because
	// they are to be reset there.
	DeferReset(sids []uint16, last seq.TSN)
	// DeferredUntil returns the TSN beyond which data of all streams is held back, and
	// AdvanceDefer moves it.
	DeferredUntil() seq.TSN
	AdvanceDefer(to seq.TSN) (ok bool)
	// Undefer takes in what is held back. If keep is set, data of the given streams beyond
	// TSN last still is held back.
	Undefer(keep bool, sids []uint16, last seq.TSN) (ok bool)
	// Unread reports whether a reset of the streams, all if sids is empty, has to wait until
	// the user has taken what came before it.
	Unread(sids []uint16) bool
	// Pressed reports whether there is little room for more data to be held back.
	Pressed() bool
	// Restart makes next the TSN that the peer sends next: what is unfinished is dropped as
	// by a FORWARD-TSN for all streams, and all streams are reset. jumped tells that the
	// TSNs of before are unrelated.
	Restart(next seq.TSN) (jumped, ok bool)
}

// Association is what else a [Handler] needs of its association. Paths are numbers, which
// mean nothing to the handler.
type Association interface {
	// Sender and Receiver return the two sides of the association.
	Sender() Sender
	Receiver() Receiver
	// Closed reports whether the association has ended, and CanSend whether it is in a state
	// to send data.
	Closed() bool
	CanSend() bool
	// DataPath returns the path that data takes, and ReplyPath the one for an answer to what
	// came by path from.
	DataPath() int
	ReplyPath(from int) int
	// Alive notes that the peer answered by a path.
	Alive(path int)
	// Room returns how many bytes of chunks the largest packet to a path carries, and RTO its
	// retransmission timeout.
	Room(path int) int
	RTO(path int) clock.Time
	// Jitter returns a random time between -d/2 and d/2.
	Jitter(d clock.Time) clock.Time
	// SetTimer makes the re-configuration timer expire at a time, or stops it at 0.
	SetTimer(at clock.Time)
	// Respond queues a RE-CONFIG chunk with responses for what came by path from.
	Respond(from int, params []byte)
	// Forward takes in a FORWARD-TSN or I-FORWARD-TSN that the handler put off.
	Forward(c wire.Chunk)
	// TSNsReset is called when all TSNs of the association have started anew.
	TSNsReset()
	// InReset, OutReset and Added notify the user: of incoming streams that the peer has
	// reset, all if sids is empty; of outgoing ones that were reset, or not because of err;
	// and of streams that were added.
	InReset(sids []uint16)
	OutReset(sids []uint16, err error)
	Added()
	// Done notifies the user of the outcome of request id.
	Done(id uint32, err error)
}
