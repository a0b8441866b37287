package mpi

import (
	"encoding/binary"
	"fmt"
)

// This file is what the engine knows of rendezvous. A message that is longer
// than the eager limit, or that the receiver has no room for, is announced
// (kindReady); the receive that matches it asks for the body, in one of two ways.
// With kindClear it is sent as a message, which goes straight into the buffer of
// the receive. With kindGrant it is written there by RDMA. The sender says in the
// announcement whether it would like that, the receiver decides, and the sender
// may send the body as a message all the same: so neither depends on what the
// other was told, and a failed RDMA connection costs time only.

// Rendezvous methods, for WithRendezvous, WEFT_RENDEZVOUS and InfoRendezvous.
const (
	// RendezvousMessage: the body is a message, placed in the buffer of the
	// receive as it arrives.
	RendezvousMessage = "message"
	// RendezvousWrite: the receiver registers the buffer of the receive, and the
	// sender writes to it with RDMA Write.
	RendezvousWrite = "write"
)

// rendezvous is a method.
type rendezvous uint8

const (
	rendezvousMessage rendezvous = iota
	rendezvousWrite
)

var rendezvousNames = [...]string{RendezvousMessage, RendezvousWrite}

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
// RendezvousMessage, the default, or RendezvousWrite, which the transport hybrid
// has; with another one all go as messages. The sender chooses; ranks may differ.
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
	// expose lets the peer that r has matched write to the buffer of r, and returns
	// what the peer needs to know. It reports false if that cannot be.
	expose(r *Request) (grant, bool)
	// write writes v.length bytes of send r to what v grants, and then tells the
	// receiver. It does not block. When the receiver has confirmed that, and the buffer
	// is not needed any more, r gets an event. If the connection is lost before, the
	// body is sent as a message.
	write(r *Request, v *envelope)
	// confirmed notes that receive id of p has the body that was written to it.
	confirmed(p *peer, id uint64)
	// poll acts on what has happened, and reports whether there was anything.
	poll() bool
}

// exposure is memory that a peer may write to.
type exposure interface {
	// withdraw ends that. When it returns nothing is written any more.
	withdraw()
}

// grant tells a sender where to write.
type grant struct {
	stag  uint32
	port  uint16 // of the receiver's device
	token [tokenLen]byte
}

const grantLen = 8 + tokenLen

func (g *grant) put(b []byte) {
	binary.BigEndian.PutUint32(b, g.stag)
	binary.BigEndian.PutUint16(b[4:], g.port)
	b[6], b[7] = 0, 0
	copy(b[8:], g.token[:])
}

// get reads what put wrote. It reports whether it is well-formed.
func (g *grant) get(b []byte) bool {
	g.stag, g.port = binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])
	copy(g.token[:], b[8:])
	return b[6] == 0 && b[7] == 0
}

// withdrawGrant makes sure that no peer writes to the buffer of r, and reports
// whether one could.
func (r *Request) withdrawGrant() bool {
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
	case r.ctx == nil || !r.withdrawGrant():
		r.fail(fmt.Errorf("%w: rank %d wrote to request %d unasked", ErrProtocol, p.rank, id))
	default:
		r.complete(r.receivedErr())
	}
	p.control(0, &envelope{kind: kindWritten, id: id})
}
