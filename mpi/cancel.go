package mpi

import (
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
)

// Cancel withdraws an operation that no other one has matched (MPI-4.1, Section
// 3.8.4). A receive is then done at once, with ErrCanceled. A send that waits
// for its receive, because it is long or synchronous, is withdrawn if the
// receiver has not matched it either, which it is asked: the request is done
// when it has answered, with ErrCanceled, or as if Cancel had not been called.
// Other sends go on: their message has been delivered to the receiver. Either
// the operation is withdrawn or it is completed, never half of it. Generalized
// requests decide themselves.
//
// Cancel does not block. It reports whether the operation is withdrawn already.
func (r *Request) Cancel() bool {
	switch g := r.generalized; {
	case g != nil:
		if g.canceled != nil {
			g.canceled(r.done.Load())
		}
		return r.done.Load() && errors.Is(r.err, ErrCanceled)
	case r.done.Load():
		return false
	case r.ctx != nil:
		return r.eng.cancel(r, ErrCanceled)
	}
	r.cancelSend()
	return false
}

// cancelSend asks the receiver to forget the message of r.
func (r *Request) cancelSend() {
	r.mu.Lock()
	ask := r.id != 0 && !r.canceling && !r.done.Load()
	r.canceling = r.canceling || ask
	r.mu.Unlock()
	if ask {
		// On the stream of the message, so that it comes after it.
		r.peer.control(r.stream, &envelope.Header{Kind: envelope.Cancel, ID: r.id})
	}
}

// withdraw forgets message id of p, if no receive has matched it, and tells p.
// If one has, p hears of that anyway: the message is asked for, or SyncAck.
func (e *engine) withdraw(p *peer, id uint64) {
	var m *message
	e.mu.Lock()
	for _, x := range e.contexts {
		ms := x.messages(func(m *message) bool {
			return m.peer == p && m.kind != envelope.Eager && m.id == id && m.whole
		})
		if len(ms) > 0 {
			m = ms[0]
			x.removeMessage(m)
			break
		}
	}
	e.mu.Unlock()
	if m == nil {
		return
	}
	if m.kind == envelope.Sync {
		p.repay(m.length)
	}
	m.recycle()
	p.control(0, &envelope.Header{Kind: envelope.Canceled, ID: id})
}

// withdrawn ends send id, which the receiver has forgotten.
func (e *engine) withdrawn(p *peer, v *envelope.Header) error {
	id := v.ID
	r := e.ids.remove(id, p)
	if r == nil {
		return nil // it has ended for another reason
	}
	r.mu.Lock()
	asked := r.canceling
	r.mu.Unlock()
	freed := v.Flags&envelope.FlagFreed != 0
	if r.ctx != nil || !asked && !freed {
		err := fmt.Errorf("%w: request %d is no send to be cancelled", ErrProtocol, id)
		r.fail(err)
		return err
	}
	if r.buf != nil {
		p.announced.Add(-1)
	}
	r.dropped = ErrCanceled // seen by whoever books the last event
	if freed {
		r.dropped = fmt.Errorf("%w: rank %d has freed it and dropped the message", ErrFreed, p.rank)
	}
	r.eventAfterReads()
	return nil
}
