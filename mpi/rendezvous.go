package mpi

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

// rendezvous is a rendezvous method.
type rendezvous uint8

const (
	rendezvousMessage rendezvous = iota
	rendezvousWrite
	rendezvousRead
)

// bulkMover moves the bodies of rendezvous messages by RDMA.
type bulkMover interface {
	// ready reports whether the other methods may be called: the device is open, or cannot be
	// opened. If not, a new goroutine tries to open it and then calls later.
	Ready(later func()) bool
	// prepare opens the device before it returns. It must not be called from an upcall of the
	// transport.
	Prepare()
	// expose registers the buffer of r for RDMA Write by the peer that r has matched, and returns
	// its key. It reports false if that is not possible.
	Expose(r *request) (envelope.Key, bool)
	// write writes v.Length bytes of send r to the memory that v.Key names, and then notifies the
	// receiver. It does not block. When the receiver has confirmed (WriteFIN) and the queue pair
	// has released the buffer, r gets an event. If the connection is lost before, the body is sent
	// as a message.
	Write(r *request, v *envelope.Header)
	// HandleWriteFIN records that receive id of p has the body that was written to it.
	HandleWriteFIN(p *peer, id uint64)
	// offer registers the buffer of send r for RDMA Read by its peer, and returns its key. It
	// reports false if that is not possible.
	Offer(r *request) (envelope.Key, bool)
	// read reads the body of a receive, and then calls engine.readDone or engine.readFailed,
	// perhaps before it returns. It does not block.
	Read(f fetch)
	// poll processes completions, and reports whether there were any.
	Poll() bool
}

// exposure is the buffer of a receive that RDMA may write to.
type exposure interface {
	// Withdraw ends the access. After it has returned nothing is written any more.
	Withdraw()
}

// revokeKey ends RDMA Writes to the buffer of r, and reports whether there could be any.
func (r *request) revokeKey() bool {
	r.place.Lock()
	x := r.exposed
	r.exposed = nil
	r.place.Unlock()
	if x == nil {
		return false
	}
	x.Withdraw()
	return true
}

// written completes the receive to which p has written the body. It answers with WriteFIN, because
// the completion of the writes at p does not say that they have been placed.
func (e *engine) written(p *peer, id uint64) {
	r := e.ids.remove(id, p) // nil if it has ended for another reason
	switch {
	case r == nil:
	case r.ctx != nil && (r.revokeKey() || r.failed.Load()):
		r.received()
	default:
		r.fail(fmt.Errorf("%w: rank %d wrote to request %d unasked", mpierr.ErrProtocol, p.rank, id))
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

// fetch is the read of a body by its receiver.
type fetch struct {
	r *request
	// epoch is the epoch of r when the fetch began. If r.epoch differs, r has been unmatched since,
	// and its buffer must not be written.
	epoch uint32
	p     *peer
	id    uint64 // of the receive
	send  uint64 // of the send
	n     int
	from  envelope.Key // of the buffer of the send
}

// prepareRendezvous opens the device for a communicator that needs it. Bodies that are sent before
// that go as messages.
func (e *engine) prepareRendezvous(h *hints) {
	if e.bulk != nil && h.rendezvous == rendezvousRead {
		e.bulk.Prepare()
	}
}

// offer adds to the RTS v of the send r the key of its buffer, if the device is open.
func (e *engine) offer(r *request, v *envelope.Header) {
	if e.bulk == nil || v.Length == 0 || r.peer.handle == int32(e.rank) || !e.bulk.Ready(func() {}) {
		return
	}
	v.Key, v.HasKey = e.bulk.Offer(r)
}

// afterReads calls then once the receiver does not read the buffer of r any more: see Offer. r
// is a send that is no longer in ids.
func (r *request) afterReads(then func(whole bool)) {
	o := r.offered
	if o == nil {
		then(false)
		return
	}
	r.offered = nil
	o.Withdraw(then)
}

// eventAfterReads counts the last event of r once afterReads calls back.
func (r *request) eventAfterReads() {
	if o := r.offered; o == nil || o.Over() { // the common case, without a closure
		r.offered = nil
		r.event(nil)
		return
	}
	r.afterReads(func(bool) { r.event(nil) })
}

// onReadFIN completes the send of the body that p has read.
func (e *engine) onReadFIN(p *peer, id uint64) error {
	r := e.ids.remove(id, p)
	if r == nil {
		return nil // it has ended for another reason
	}
	if r.ctx != nil || r.offered == nil {
		err := fmt.Errorf("%w: rank %d read request %d unasked", mpierr.ErrProtocol, p.rank, id)
		r.fail(err)
		return err
	}
	p.announced.Add(-1)
	r.eventAfterReads()
	return nil
}

// readDone completes the receive that has read its body, unless gone says that it has ended before,
// and sends ReadFIN.
func (e *engine) readDone(f *fetch, gone bool) {
	r := e.ids.remove(f.id, f.p) // nil if it has ended for another reason
	if r != nil && !gone {
		r.place.Lock()
		r.exposed = nil
		r.place.Unlock()
		r.received()
	}
	f.p.control(0, &envelope.Header{Kind: envelope.ReadFIN, ID: f.send})
}

// readFailed falls back to CTS for a body that could not be read.
func (e *engine) readFailed(f *fetch) {
	f.r.place.Lock()
	if f.r.epoch == f.epoch {
		f.r.exposed = nil
	}
	f.r.place.Unlock()
	f.p.control(0, &envelope.Header{Kind: envelope.CTS, ID: f.send, PeerID: f.id, Length: uint64(f.n)})
}
