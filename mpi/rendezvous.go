package mpi

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
)

// This file is what the engine knows of rendezvous. A message that is longer
// than the eager limit, or that the receiver has no room for, is announced
// (RTS); the receive that matches it gets the body in one of three ways. If
// it asks with CTS the body is sent as a message, which goes straight into the
// buffer of the receive. With CTSKey it is written there by RDMA. The sender says
// in the announcement whether it would like that, the receiver decides, and the
// sender may send the body as a message all the same. Or the sender has offered its
// buffer (RTSKey), the receiver reads it by RDMA, or as memory of another process on
// its host, and says so (ReadFIN), or asks with CTS if it cannot. So neither
// depends on what the other was told, and a failed RDMA connection costs time only.

// Rendezvous methods, for WithRendezvous, WEFT_RENDEZVOUS and InfoRendezvous.
const (
	// RendezvousMessage: the body is a message, placed in the buffer of the
	// receive as it arrives.
	RendezvousMessage = "message"
	// RendezvousWrite: the receiver registers the buffer of the receive, and the
	// sender writes to it with RDMA Write.
	RendezvousWrite = "write"
	// RendezvousRead: the sender registers the buffer of the send, and the receiver
	// reads it with RDMA Read into the buffer of the receive.
	RendezvousRead = "read"
)

// rendezvous is a method.
type rendezvous uint8

const (
	rendezvousMessage rendezvous = iota
	rendezvousWrite
	rendezvousRead
)

var rendezvousNames = [...]string{RendezvousMessage, RendezvousWrite, RendezvousRead}

func (m rendezvous) String() string { return rendezvousNames[m] }

func parseRendezvous(s string) (rendezvous, bool) {
	for i, name := range rendezvousNames {
		if s == name {
			return rendezvous(i), true
		}
	}
	return 0, false
}

// WithRendezvous sets how messages travel that are longer than the eager limit:
// RendezvousMessage, the default, or RendezvousWrite or RendezvousRead, which the
// transport hybrid has; with another one all go as messages. The sender chooses;
// ranks may differ.
func WithRendezvous(method string) Option {
	return func(o *options) error {
		m, ok := parseRendezvous(method)
		if !ok {
			return fmt.Errorf("%w: rendezvous method %q", ErrOption, method)
		}
		o.rendezvous = m
		return nil
	}
}

// bulkMover moves bodies from memory to memory.
type bulkMover interface {
	// ready reports whether the other methods may be called. If not, it makes them
	// so, on a goroutine of its own, which then calls later.
	ready(later func()) bool
	// prepare does so before it returns. It is not to be called where a transport calls this rank.
	prepare()
	// expose lets the peer that r has matched write to the buffer of r, and returns
	// what the peer needs to know. It reports false if that cannot be.
	expose(r *Request) (envelope.Key, bool)
	// write writes v.length bytes of send r to what v grants, and then tells the
	// receiver. It does not block. When the receiver has confirmed that, and the buffer
	// is not needed any more, r gets an event. If the connection is lost before, the
	// body is sent as a message.
	write(r *Request, v *envelope.Header)
	// onWriteFIN notes that receive id of p has the body that was written to it.
	onWriteFIN(p *peer, id uint64)
	// offer lets the peer of send r read its buffer, and returns what the peer needs to
	// know. It reports false if that cannot be.
	offer(r *Request) (envelope.Key, bool)
	// read reads the body of a receive, and then calls engine.readDone or
	// engine.readFailed, perhaps before it returns. It does not block.
	read(f fetch)
	// poll acts on what has happened, and reports whether there was anything.
	poll() bool
}

// exposure is memory that a peer may write to.
type exposure interface {
	// withdraw ends that. When it returns nothing is written any more.
	withdraw()
}

// offering is memory of a send that the receiver may read.
type offering interface {
	// over ends that if the receiver has said that it has read all, and reports whether.
	over() bool
	// withdraw ends that, and calls then when nothing is read of it any more: before it
	// returns, or later on any goroutine. Whole tells that the receiver is known to have
	// read all of it.
	withdraw(then func(whole bool))
}

// revokeKey makes sure that no peer writes to the buffer of r, and reports
// whether one could.
func (r *Request) revokeKey() bool {
	r.place.Lock()
	x := r.exposed
	r.exposed = nil
	r.place.Unlock()
	if x == nil {
		return false
	}
	x.withdraw()
	return true
}

// written ends the receive that p has written the body of. The end of the writes at
// p does not tell p that they have been placed.
func (e *engine) written(p *peer, id uint64) {
	r := e.ids.remove(id, p) // nil if it has ended for another reason
	switch {
	case r == nil:
	case r.ctx != nil && (r.revokeKey() || r.failed.Load()):
		r.received()
	default:
		r.fail(fmt.Errorf("%w: rank %d wrote to request %d unasked", ErrProtocol, p.rank, id))
	}
	p.control(0, &envelope.Header{Kind: envelope.WriteFIN, ID: id})
}

// proposal is how the sender of a body would like it to travel.
type proposal struct {
	write bool         // by RDMA Write
	offer bool         // by RDMA Read, or
	cma   bool         // by a copy that the system makes
	key   envelope.Key // for that
}

func proposalOf(v *envelope.Header) proposal {
	cma := v.HasKey && v.Flags&envelope.FlagCMA != 0
	return proposal{write: v.Flags&envelope.FlagWrite != 0 && !cma, offer: v.HasKey && !cma, cma: cma, key: v.Key}
}

// fetch is a body that a receive reads from its sender.
type fetch struct {
	r *Request
	// epoch is that of r when the fetch began. Another one tells that r has been
	// unmatched since, and its buffer is not to be touched.
	epoch uint32
	p     *peer
	id    uint64 // of the receive
	send  uint64 // of the send
	n     int
	from  envelope.Key
}

// prepareRendezvous opens what a communicator needs for its method: what is sent
// before that goes as messages.
func (e *engine) prepareRendezvous(h *hints) {
	if e.bulk != nil && h.rendezvous == rendezvousRead {
		e.bulk.prepare()
	}
}

// offer lets the peer of r, a send that is being announced by v, read its buffer.
func (e *engine) offer(r *Request, v *envelope.Header) {
	if e.bulk == nil || v.Length == 0 || r.peer.handle == int32(e.rank) || !e.bulk.ready(func() {}) {
		return
	}
	v.Key, v.HasKey = e.bulk.offer(r)
}

// afterReads calls then when the receiver does not read the buffer of r any more, see
// offering. r is a send that has no id any more.
func (r *Request) afterReads(then func(whole bool)) {
	o := r.offered
	if o == nil {
		then(false)
		return
	}
	r.offered = nil
	o.withdraw(then)
}

// eventAfterReads books the last event of r as soon as afterReads calls.
func (r *Request) eventAfterReads() {
	if o := r.offered; o == nil || o.over() { // nothing to wait for, which takes no closure
		r.offered = nil
		r.event(nil)
		return
	}
	r.afterReads(func(bool) { r.event(nil) })
}

// onReadFIN ends the send whose body p has read.
func (e *engine) onReadFIN(p *peer, id uint64) error {
	r := e.ids.remove(id, p)
	if r == nil {
		return nil // it has ended for another reason
	}
	if r.ctx != nil || r.offered == nil {
		err := fmt.Errorf("%w: rank %d read request %d unasked", ErrProtocol, p.rank, id)
		r.fail(err)
		return err
	}
	p.announced.Add(-1)
	r.eventAfterReads()
	return nil
}

// readDone ends the receive that has read its body. If gone is true, it has ended
// before.
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

// readFailed asks for a body that could not be read.
func (e *engine) readFailed(f *fetch) {
	f.r.place.Lock()
	if f.r.epoch == f.epoch {
		f.r.exposed = nil
	}
	f.r.place.Unlock()
	f.p.control(0, &envelope.Header{Kind: envelope.CTS, ID: f.send, PeerID: f.id, Length: uint64(f.n)})
}
