package p2p

import (
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// Special values of the source and the tag of a receive.
const (
	AnySource = -1
	AnyTag    = -1
	ProcNull  = -2
)

// A Slot selects one of the separate matching contexts of a communicator, so
// that messages of the program never match those of the library.
type Slot uint64

const (
	SlotUser Slot = iota // messages of the program
	SlotColl             // collective operations
	SlotComm             // making communicators
	SlotWin              // windows
	SlotCount

	SlotMask = 7 // the bits of an id, and of a slot, that select the context

	slotSigShift = 16
)

// Of returns the slot for messages of elements with a signature, which it carries to where
// they are matched.
func (s Slot) Of(sig datatype.Sig) Slot { return s | Slot(sig)<<slotSigShift }

// context returns the slot without a signature.
func (s Slot) context() Slot { return s & SlotMask }

// Sig returns the signature of the elements.
func (s Slot) Sig() datatype.Sig { return datatype.Sig(s >> slotSigShift) }

// Comm is a communicator as the engine sees it: numbered peers, and matching contexts of its own.
type Comm struct {
	Engine   *Engine
	ID       uint64 // the same on all members; the low bits select the slot
	Rank     int    // of the caller; in an intercommunicator, among the local group
	Peers    []*Peer
	Local    []*Peer  // of an intercommunicator: the local group, set before Init; its failures end collectives, too
	seq      []uint32 // next sequence number to each of peers; guarded by Peer.mu
	Contexts [SlotCount]*Context
	Hints    atomic.Pointer[Hints]
	owner    any    // the communicator of the program
	gone     func() // called when the last context has been dropped

	Freed   atomic.Bool
	uses    atomic.Int64 // collectives under way, and 1 until Free
	lasting atomic.Int32 // contexts that are not dropped; see drop
	FT      FailureState
}

// FailureState is the failure state of a communicator.
type FailureState struct {
	Revoked atomic.Bool
	broken  atomic.Pointer[error] // the failure of the first member that failed
	acked   []bool                // failures that the program has acknowledged; guarded by Engine.Mu
}

// Hints say how the messages of a communicator are sent and matched.
type Hints struct {
	NoAnyTag, NoAnySource, ExactLength, Overtaking bool
	Eager                                          int
	Streams                                        uint32
	Rendezvous                                     Rendezvous
}

// DefaultHints returns the hints of a communicator for which the program has given none.
func (e *Engine) DefaultHints() Hints {
	h := Hints{Eager: e.eager, Streams: e.Streams, Rendezvous: e.method}
	if e.Bulk == nil {
		h.Rendezvous = RendezvousMessage
	}
	return h
}

// Init makes c able to exchange messages with peers. owner is the communicator of the program,
// and gone is called when the last context of c has been dropped.
func (c *Comm) Init(e *Engine, peers []*Peer, owner any, gone func()) {
	c.Engine, c.Peers, c.owner, c.gone = e, peers, owner, gone
	c.seq = make([]uint32, len(peers))
	c.uses.Store(1)
	e.retain(peers)
	e.register(c)
}

// SetHints puts hints into effect.
func (c *Comm) SetHints(h Hints) {
	c.Hints.Store(&h)
	c.Contexts[SlotUser].exactLength.Store(h.ExactLength)
}
