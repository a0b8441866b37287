package p2p

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Rendezvous protocol of the engine. A message that is longer than the eager limit, or for which
// the receiver has no room, begins with an RTS. The receive that matches it gets the body in one of
// three ways:
//
//	CTS      the sender sends the body as a message, which is placed in the buffer of the receive
//	CTSKey   the sender writes the body to that buffer by RDMA Write; the receiver confirms (WriteFIN)
//	ReadFIN  the RTS carried a key (RTSKey): the receiver has read the body from the buffer of the
//	         send, by RDMA Read or cross-memory attach
//
// The RTS proposes a method and the receiver chooses; after a CTSKey the sender may still send the
// body as a message, and a receiver that cannot read falls back to CTS. So both sides work whatever
// the other side supports, and a failed RDMA connection costs only time.

// Rendezvous is a rendezvous method.
type Rendezvous uint8

const (
	RendezvousMessage Rendezvous = iota
	RendezvousWrite
	RendezvousRead
)

// BulkMover moves the bodies of rendezvous messages by RDMA.
type BulkMover interface {
	// Ready reports whether the other methods may be called: the device is open, or cannot be
	// opened. If not, a new goroutine tries to open it and then calls later.
	Ready(later func()) bool
	// Prepare opens the device before it returns. It must not be called from an upcall of the
	// transport.
	Prepare()
	// Expose registers the buffer of r for RDMA Write by the peer that r has matched, and returns
	// its key. It reports false if that is not possible.
	Expose(r *Request) (envelope.Key, bool)
	// Write writes v.Length bytes of send r to the memory that v.Key names, and then notifies the
	// receiver. It does not block. When the receiver has confirmed (WriteFIN) and the queue pair
	// has released the buffer, r gets an event. If the connection is lost before, the body is sent
	// as a message.
	Write(r *Request, v *envelope.Header)
	// HandleWriteFIN records that receive id of p has the body that was written to it.
	HandleWriteFIN(p *Peer, id uint64)
	// Offer registers the buffer of send r for RDMA Read by its peer, and returns its key. It
	// reports false if that is not possible.
	Offer(r *Request) (envelope.Key, bool)
	// Read reads the body of a receive, and then calls engine.ReadDone or engine.ReadFailed,
	// perhaps before it returns. It does not block.
	Read(f Fetch)
	// Poll processes completions, and reports whether there were any.
	Poll() bool
}

// Exposure is the buffer of a receive that RDMA may write to.
type Exposure interface {
	// Withdraw ends the access. After it has returned nothing is written any more.
	Withdraw()
}

// RevokeKey ends RDMA Writes to the buffer of r, and reports whether there could be any.
func (r *Request) RevokeKey() bool {
	r.Place.Lock()
	x := r.Exposed
	r.Exposed = nil
	r.Place.Unlock()
	if x == nil {
		return false
	}
	x.Withdraw()
	return true
}

// Written completes the receive to which p has written the body. It answers with WriteFIN, because
// the completion of the writes at p does not say that they have been placed.
func (e *Engine) Written(p *Peer, id uint64) {
	r := e.IDs.remove(id, p) // nil if it has ended for another reason
	switch {
	case r == nil:
	case r.Context != nil && (r.RevokeKey() || r.failed.Load()):
		r.received()
	default:
		r.abandon(fmt.Errorf("%w: rank %d wrote to request %d unasked", mpierr.ErrProtocol, p.Rank, id))
	}
	p.control(0, &envelope.Header{Kind: envelope.WriteFIN, ID: id})
}

// proposal is the method that the sender of an RTS proposes for the body.
type proposal struct {
	write bool         // RDMA Write by the sender
	offer bool         // RDMA Read by the receiver
	cma   bool         // cross-memory attach by the receiver
	key   envelope.Key // of the buffer of the send, for offer and cma
}

func proposalOf(v *envelope.Header) proposal {
	cma := v.HasKey && v.Flags&envelope.FlagCMA != 0
	return proposal{write: v.Flags&envelope.FlagWrite != 0 && !cma, offer: v.HasKey && !cma, cma: cma, key: v.Key}
}

// Fetch is the read of a body by its receiver.
type Fetch struct {
	Receive *Request
	// Epoch is the epoch of r when the fetch began. If r.epoch differs, r has been unmatched since,
	// and its buffer must not be written.
	Epoch uint32
	Peer  *Peer
	ID    uint64 // of the receive
	Send  uint64 // of the send
	Len   int
	From  envelope.Key // of the buffer of the send
}

// PrepareRendezvous opens the device for a communicator that needs it. Bodies that are sent before
// that go as messages.
func (e *Engine) PrepareRendezvous(h *Hints) {
	if e.Bulk != nil && h.Rendezvous == RendezvousRead {
		e.Bulk.Prepare()
	}
}

// offer adds to the RTS v of the send r the key of its buffer, if the device is open.
func (e *Engine) offer(r *Request, v *envelope.Header) {
	if e.Bulk == nil || v.Length == 0 || r.Peer.ProcHandle == int32(e.Rank) || r.Peer.Distant || !e.Bulk.Ready(func() {}) {
		return
	}
	v.Key, v.HasKey = e.Bulk.Offer(r)
}

// AfterReads calls then once the receiver does not read the buffer of r any more: see Offer. r
// is a send that is no longer in ids.
func (r *Request) AfterReads(then func(whole bool)) {
	o := r.Offered
	if o == nil {
		then(false)
		return
	}
	r.Offered = nil
	o.Withdraw(then)
}

// eventAfterReads counts the last event of r once AfterReads calls back.
func (r *Request) eventAfterReads() {
	if o := r.Offered; o == nil || o.Over() { // the common case, without a closure
		r.Offered = nil
		r.Event(nil)
		return
	}
	r.AfterReads(func(bool) { r.Event(nil) })
}

// onReadFIN completes the send of the body that p has read.
func (e *Engine) onReadFIN(p *Peer, id uint64) error {
	r := e.IDs.remove(id, p)
	if r == nil {
		return nil // it has ended for another reason
	}
	if r.Context != nil || r.Offered == nil {
		err := fmt.Errorf("%w: rank %d read request %d unasked", mpierr.ErrProtocol, p.Rank, id)
		r.abandon(err)
		return err
	}
	p.Announced.Add(-1)
	r.eventAfterReads()
	return nil
}

// ReadDone completes the receive that has read its body, unless gone says that it has ended before,
// and sends ReadFIN.
func (e *Engine) ReadDone(f *Fetch, gone bool) {
	r := e.IDs.remove(f.ID, f.Peer) // nil if it has ended for another reason
	if r != nil && !gone {
		r.Place.Lock()
		r.Exposed = nil
		r.Place.Unlock()
		r.received()
	}
	f.Peer.control(0, &envelope.Header{Kind: envelope.ReadFIN, ID: f.Send})
}

// ReadFailed falls back to CTS for a body that could not be read.
func (e *Engine) ReadFailed(f *Fetch) {
	f.Receive.Place.Lock()
	if f.Receive.Epoch == f.Epoch {
		f.Receive.Exposed = nil
	}
	f.Receive.Place.Unlock()
	f.Peer.control(0, &envelope.Header{Kind: envelope.CTS, ID: f.Send, PeerID: f.ID, Length: uint64(f.Len)})
}
