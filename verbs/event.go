package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// MaxEvents bounds the asynchronous events that wait for GetEvent. When there
// are more the oldest are dropped, and counted in Stats.EventsLost.
const MaxEvents = 4096

// EventType is the kind of an asynchronous event.
type EventType uint8

// Asynchronous events, with what ibv_get_async_event calls them.
const (
	// EventCQError: a completion queue overflowed (IBV_EVENT_CQ_ERR). The queue
	// pairs that lost completions end, each with an EventQPFatal. There is another
	// one only after completions were taken from the queue, or it was given room.
	EventCQError EventType = iota + 1
	// EventQPFatal: a queue pair ended because the peer terminated it, or
	// because of a local error, or its association or connection was lost
	// (IBV_EVENT_QP_FATAL).
	EventQPFatal
	// EventQPRequestError: this side terminated a queue pair because of an
	// invalid message (IBV_EVENT_QP_REQ_ERR).
	EventQPRequestError
	// EventQPAccessError: this side terminated a queue pair because its peer
	// tried to access what it may not (IBV_EVENT_QP_ACCESS_ERR).
	EventQPAccessError
	// EventSQDrained: a queue pair in StateSQD has completed what it had
	// started (IBV_EVENT_SQ_DRAINED).
	EventSQDrained
	// EventLastWQE: a queue pair with a shared receive queue is at its end and
	// takes no more of its receives (IBV_EVENT_QP_LAST_WQE_REACHED).
	EventLastWQE
	// EventSRQLimit: a shared receive queue fell below its limit
	// (IBV_EVENT_SRQ_LIMIT_REACHED).
	EventSRQLimit
	// EventPeerUp, EventPeerDown: the association with the device at Addr was
	// established or lost; the nearest to IBV_EVENT_PORT_ACTIVE and
	// IBV_EVENT_PORT_ERR.
	EventPeerUp
	EventPeerDown
	// EventPathUp, EventPathDown: one of several addresses of a peer became
	// reachable or unreachable; the association goes on.
	EventPathUp
	EventPathDown
)

var eventNames = [...]string{"no event", "CQ error", "QP fatal error", "QP request error", "QP access error",
	"SQ drained", "last WQE reached", "SRQ limit reached", "peer up", "peer down", "path up", "path down"}

// String returns a short name.
func (t EventType) String() string {
	if int(t) < len(eventNames) {
		return eventNames[t]
	}
	return "unknown event"
}

// Event is an asynchronous event of a device (ibv_get_async_event). It needs no
// acknowledgement and keeps no object busy: closing an object discards its events.
type Event struct {
	Type EventType
	// QP, CQ and SRQ are the object it is about, if it is one of those.
	QP  *QP
	CQ  *CQ
	SRQ *SRQ
	// Addr is the peer's address, for EventPeerUp to EventPathDown.
	Addr netip.AddrPort
	// Process is the peer's address instead, if the association goes through gateways.
	Process relay.Address
	// Err is why, where that is known.
	Err error
}

// String describes the event.
func (e Event) String() string {
	s := e.Type.String()
	if e.QP != nil {
		s += fmt.Sprintf(", QP %d", e.QP.num)
	}
	if e.Addr.IsValid() {
		s += ", " + e.Addr.String()
	}
	if e.Process != (relay.Address{}) {
		s += ", " + e.Process.String()
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// events is the queue of asynchronous events: a ring that grows up to
// MaxEvents.
type events struct {
	wake doorbell // signalled while there may be events

	mu     sync.Mutex
	ring   []Event // guarded by mu
	head   int     // guarded by mu
	n      int     // guarded by mu
	lost   uint64  // guarded by mu
	closed bool    // guarded by mu
}

// push queues an event. It may be called with any lock held.
func (q *events) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.n == len(q.ring) {
		if q.n == MaxEvents {
			q.head = (q.head + 1) % q.n
			q.n--
			q.lost++
		} else {
			ring := make([]Event, max(16, 2*q.n))
			for i := range q.n {
				ring[i] = q.ring[(q.head+i)%q.n]
			}
			q.ring, q.head = ring, 0
		}
	}
	q.ring[(q.head+q.n)%len(q.ring)] = e
	q.n++
	q.wake.signal()
}

// take takes the oldest event; without one a closed queue is ErrClosed.
func (q *events) take() (e Event, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		if q.closed {
			q.wake.signal()
			err = ErrClosed
		}
		return e, false, err
	}
	e, q.ring[q.head] = q.ring[q.head], Event{}
	q.head = (q.head + 1) % len(q.ring)
	if q.n--; q.n > 0 {
		q.wake.signal()
	}
	return e, true, nil
}

// forget drops the events of objects that have been closed; others are nil.
func (q *events) forget(qp *QP, cq *CQ, srq *SRQ) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := 0
	for i := range q.n {
		e := &q.ring[(q.head+i)%len(q.ring)]
		if qp != nil && e.QP == qp || cq != nil && e.CQ == cq || srq != nil && e.SRQ == srq {
			continue
		}
		q.ring[(q.head+kept)%len(q.ring)] = *e
		kept++
	}
	for i := kept; i < q.n; i++ {
		q.ring[(q.head+i)%len(q.ring)] = Event{}
	}
	q.n = kept
}

// close ends the calls that wait.
func (q *events) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.signal()
}

// PollEvent returns the oldest asynchronous event, if there is one. It never
// blocks.
func (d *Device) PollEvent() (Event, bool) {
	e, ok, _ := d.events.take()
	return e, ok
}

// GetEvent returns the oldest asynchronous event. It blocks until there is one,
// ctx is done, or the device is closed (ErrClosed).
func (d *Device) GetEvent(ctx context.Context) (Event, error) {
	return await(ctx, d.events.wake, d.events.take)
}

// onNotify takes a notification of SCTP: upcall.
func (d *Device) onNotify(a *ddpsctp.Association, n sctp.Notification) {
	e := Event{Addr: n.Addr, Err: n.Err}
	switch n.Kind {
	case sctp.NotifyUp:
		e.Type = EventPeerUp
	case sctp.NotifyDown:
		e.Type = EventPeerDown
	case sctp.NotifyPathUp:
		e.Type = EventPathUp
	case sctp.NotifyPathDown:
		e.Type = EventPathDown
	default:
		return // some come with every message
	}
	if !e.Addr.IsValid() {
		if remote := a.RemoteAddr(); len(remote.Addrs) > 0 {
			e.Addr = remote.Addrs[0]
		}
	}
	d.events.push(e)
}

// ended raises the event for a queue pair that ends in error.
func (qp *QP) ended(err error) {
	e := Event{Type: EventQPFatal, QP: qp, Err: err}
	var t *TerminateError
	if errors.As(err, &t) && !t.ByPeer {
		switch f := t.Header.Fault; {
		case f.Layer() <= ddp.LayerDDP && f.Type() == 1: // both layers' protection errors
			e.Type = EventQPAccessError
		case t.Header.HasDDP:
			e.Type = EventQPRequestError
		}
	}
	qp.pd.dev.events.push(e)
}
