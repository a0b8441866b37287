package mpi

import (
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// Special values of the source and the tag of a receive.
const (
	anySource = -1
	anyTag    = -1
	procNull  = -2
)

// A slot selects one of the separate matching contexts of a communicator, so
// that messages of the program never match those of the library.
type slot uint64

const (
	slotUser slot = iota // messages of the program
	slotColl             // collective operations
	slotComm             // making communicators
	slotWin              // windows
	slotCount

	slotMask = 7 // the bits of an id, and of a slot, that select the context

	slotSigShift = 16
)

// of returns the slot for messages of elements with a signature, which it carries to where
// they are matched.
func (s slot) of(sig datatype.Sig) slot { return s | slot(sig)<<slotSigShift }

// context returns the slot without a signature.
func (s slot) context() slot { return s & slotMask }

// sig returns the signature of the elements.
func (s slot) sig() datatype.Sig { return datatype.Sig(s >> slotSigShift) }

// comm is a communicator as the engine sees it: numbered peers, and matching contexts of its own.
type comm struct {
	eng   *engine
	id    uint64 // the same on all members; the low bits select the slot
	rank  int    // of the caller; in an intercommunicator, among the local group
	peers []*peer
	seq   []uint32 // next sequence number to each of peers; guarded by peer.mu
	ctx   [slotCount]*matchContext
	hints atomic.Pointer[hints]
	owner any    // the communicator of the program
	gone  func() // called when the last context has been dropped

	freed   atomic.Bool
	uses    atomic.Int64 // collectives under way, and 1 until Free
	lasting atomic.Int32 // contexts that are not dropped; see drop
	ft      ftState
}

// ftState is the failure state of a communicator.
type ftState struct {
	revoked atomic.Bool
	broken  atomic.Pointer[error] // the failure of the first member that failed
	acked   []bool                // failures that the program has acknowledged; guarded by eng.mu
}

// hints say how the messages of a communicator are sent and matched.
type hints struct {
	noAnyTag, noAnySource, exactLength, overtaking bool
	eager                                          int
	streams                                        uint32
	rendezvous                                     rendezvous
}

// defaultHints returns the hints of a communicator for which the program has given none.
func (e *engine) defaultHints() hints {
	h := hints{eager: e.eager, streams: e.streams, rendezvous: e.method}
	if e.bulk == nil {
		h.rendezvous = rendezvousMessage
	}
	return h
}

// init makes c able to exchange messages with peers. owner is the communicator of the program,
// and gone is called when the last context of c has been dropped.
func (c *comm) init(e *engine, peers []*peer, owner any, gone func()) {
	c.eng, c.peers, c.owner, c.gone = e, peers, owner, gone
	c.seq = make([]uint32, len(peers))
	c.uses.Store(1)
	e.retain(peers)
	e.register(c)
}

// setHints puts hints into effect.
func (c *comm) setHints(h hints) {
	c.hints.Store(&h)
	c.ctx[slotUser].exactLength.Store(h.exactLength)
}
