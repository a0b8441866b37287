package p2p

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Cancel withdraws the operation with err, if no other one has matched it: a receive at once, and
// then it reports true, a send by asking the receiver.
func (r *Request) Cancel(err error) bool {
	switch {
	case r.Finished.Load():
		return false
	case r.Context != nil:
		return r.Engine.Cancel(r, err)
	}
	r.cancelSend()
	return false
}

// cancelSend asks the receiver to forget the message of r.
func (r *Request) cancelSend() {
	r.mu.Lock()
	ask := r.id != 0 && !r.canceling && !r.Finished.Load()
	r.canceling = r.canceling || ask
	r.mu.Unlock()
	if ask {
		// On the stream of the message, so that it comes after it.
		r.Peer.control(r.stream, &envelope.Header{Kind: envelope.Cancel, ID: r.id})
	}
}

// withdraw forgets message id of p, if no receive has matched it, and tells p.
// If one has, p hears of that anyway: the message is asked for, or SyncAck.
func (e *Engine) withdraw(p *Peer, id uint64) {
	var m *Message
	e.Mu.Lock()
	for _, x := range e.Contexts {
		ms := x.messages(func(m *Message) bool {
			return m.peer == p && m.kind != envelope.Eager && m.id == id && m.whole
		})
		if len(ms) > 0 {
			m = ms[0]
			x.removeMessage(m)
			break
		}
	}
	e.Mu.Unlock()
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
func (e *Engine) withdrawn(p *Peer, v *envelope.Header) error {
	id := v.ID
	r := e.IDs.remove(id, p)
	if r == nil {
		return nil // it has ended for another reason
	}
	r.mu.Lock()
	asked := r.canceling
	r.mu.Unlock()
	freed := v.Flags&envelope.FlagFreed != 0
	if r.Context != nil || !asked && !freed {
		err := fmt.Errorf("%w: request %d is no send to be cancelled", mpierr.ErrProtocol, id)
		r.abandon(err)
		return err
	}
	if r.announced {
		p.Announced.Add(-1)
	}
	r.dropped = mpierr.ErrCanceled // seen by whoever books the last event
	if freed {
		r.dropped = fmt.Errorf("%w: rank %d has freed it and dropped the message", mpierr.ErrFreed, p.Rank)
	}
	r.eventAfterReads()
	return nil
}
