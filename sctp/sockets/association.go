package sockets

import (
	"sync/atomic"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp"
)

// association is an association of package sctp and the socket that it belongs to.
type association struct {
	a    *sctp.Association
	id   SCTPAssocID
	port *port
	// sock changes with PeelOff, while the mutex of the old one is held.
	sock atomic.Pointer[SCTPConn]

	// Upcalls are made by one goroutine at a time, which owns the fields below.
	incomplete map[uint64]*assembly // messages by sctp.Piece.Message
	partial    uint64               // the one that is being delivered in part
	inPart     bool
	held       []*item // messages behind it
	shutdown   bool    // the peer has begun a shutdown
	unsent     bool    // then not all that was written had arrived, and has not since
}

// itemOverhead is what a message in a receive queue counts beside its payload, in bytes: with a
// short one its buffer of at least 256 bytes, its item and its place in the queue.
const itemOverhead = 400

// lastID is the last SCTPAssocID that was given.
var lastID atomic.Int32

func nextID() SCTPAssocID {
	for {
		if id := lastID.Add(1); id > 0 {
			return SCTPAssocID(id)
		}
		lastID.CompareAndSwap(-1<<31, 0)
	}
}

// onAssociation is told of each association that is established on a port.
func (p *port) onAssociation(a *sctp.Association) {
	as := &association{a: a, id: nextID(), port: p, incomplete: map[uint64]*assembly{}}
	p.retain()
	c := p.newPeer(p)
	as.sock.Store(c)
	a.SetValue(as)
	c.attach(as)
	if p.accept != nil && !p.accept(c) {
		a.Abort("backlog full")
		go c.Close() // not here: it may wait for the goroutine that makes upcalls
	}
}

// onPiece is told of each fragment of a message.
func onPiece(a *sctp.Association, p *sctp.Piece) {
	as := a.Value().(*association)
	if p.Begin && p.End && !p.Aborted {
		it := newItem()
		it.info = as.info(p)
		it.buf = bufpool.Get(len(p.Data))
		it.data = it.buf.Bytes(len(p.Data))
		copy(it.data, p.Data)
		it.charge, it.flags = len(p.Data)+itemOverhead, MSG_EOR
		it.from = as
		a.KeepReceived(it.charge)
		as.deliver(it, p.Message)
		return
	}
	as.assemble(p)
}

// info describes the message of a fragment.
func (as *association) info(p *sctp.Piece) SndRcvInfo {
	info := SndRcvInfo{Stream: p.Stream, SSN: p.SSN, PPID: p.PPID, TSN: p.TSN, AssocID: int32(as.id)}
	if p.Unordered {
		info.Flags, info.CumTSN = SCTP_UNORDERED, p.TSN
	}
	return info
}

// assemble takes a fragment of a message that has several.
func (as *association) assemble(p *sctp.Piece) {
	m := as.incomplete[p.Message]
	if m == nil {
		if p.Aborted {
			return // of a message of which nothing came
		}
		m = &assembly{info: as.info(p), charge: itemOverhead}
		as.incomplete[p.Message] = m
		as.a.KeepReceived(itemOverhead)
	}
	if p.End {
		delete(as.incomplete, p.Message)
	}
	if p.Aborted {
		as.abandon(m)
		return
	}
	before := m.charge
	m.add(p.Data)
	as.a.KeepReceived(m.charge - before)
	// A message that takes half of the receive buffer is delivered in part (RFC 6458, Section
	// 8.1.21), one at a time: otherwise the window could close before its end.
	if !p.End && !m.part && (as.inPart || m.n < as.port.set.ReadBuffer/2) {
		return
	}
	it := newItem()
	it.from, it.info, it.buf, it.data, it.charge = as, m.info, m.buf, m.buf.Bytes(m.n), m.charge
	m.buf, m.n, m.charge = nil, 0, 0
	if p.End {
		it.flags = MSG_EOR
	} else {
		m.part, as.inPart, as.partial = true, true, p.Message
	}
	as.deliver(it, p.Message)
}

// abandon forgets a message whose rest will never come.
func (as *association) abandon(m *assembly) {
	if m.charge > 0 {
		as.a.KeepReceived(-m.charge)
	}
	m.buf.Put()
	if m.part {
		as.notify(SCTP_EVENT_PARTIAL_DELIVERY, &PartialDelivery{AssocID: as.id, Stream: uint32(m.info.Stream), Sequence: uint32(m.info.SSN)})
		as.endPart()
	}
}

// deliver puts a message, or a part of one, into the queue of the socket. Others wait until one
// that is delivered in part has ended.
func (as *association) deliver(it *item, message uint64) {
	if as.inPart && message != as.partial {
		as.held = append(as.held, it)
		return
	}
	end := it.flags&MSG_EOR != 0
	as.enqueue(it)
	if as.inPart && end {
		as.endPart()
	}
}

// endPart delivers what waited for the end of a message that was delivered in part.
func (as *association) endPart() {
	as.inPart = false
	for _, it := range as.held {
		as.enqueue(it)
	}
	as.held = nil
}

// lock locks the socket of the association and returns it.
func (as *association) lock() *SCTPConn {
	for {
		c := as.sock.Load()
		c.mu.Lock()
		if as.sock.Load() == c {
			return c
		}
		c.mu.Unlock()
	}
}

func (as *association) enqueue(it *item) {
	c := as.lock()
	closed := c.closed
	if !closed {
		c.queue.push(it)
		c.waiters.wake()
	}
	c.mu.Unlock()
	if closed {
		it.free()
	}
}

// onNotify is told of each event.
func onNotify(a *sctp.Association, n sctp.Notification) {
	as, ok := a.Value().(*association)
	if !ok {
		return
	}
	switch n.Kind {
	case sctp.NotifyUp:
		out, in := a.Streams()
		as.notify(SCTP_EVENT_ASSOCIATION, &AssocChange{AssocID: as.id, State: SCTP_COMM_UP, OutStreams: out, InStreams: in})
		if v, ok := a.PeerAdaptation(); ok {
			as.notify(SCTP_EVENT_ADAPTATION_LAYER, &Adaptation{AssocID: as.id, Indication: v})
		}
	case sctp.NotifyRestart:
		as.shutdown, as.unsent = false, false
		out, in := a.Streams()
		as.notify(SCTP_EVENT_ASSOCIATION, &AssocChange{AssocID: as.id, State: SCTP_RESTART, OutStreams: out, InStreams: in})
	case sctp.NotifyShutdown:
		// The program is told at NotifyDown, behind the end of messages that have none.
		as.shutdown = true
		as.unsent = a.Stats().Queued > 0 // and no more can be written
	case sctp.NotifyDown:
		as.down(n.Err)
	case sctp.NotifyRemoteError:
		as.notify(SCTP_EVENT_PEER_ERROR, &RemoteError{AssocID: as.id, Error: n.Cause})
	case sctp.NotifySenderDry:
		as.unsent = false
		if as.sock.Load().subscribed(SCTP_EVENT_SENDER_DRY) { // which most do not, and it is frequent
			as.notify(SCTP_EVENT_SENDER_DRY, &SenderDry{AssocID: as.id})
		}
	default:
		if s, ok := pathStates[n.Kind]; ok {
			as.notify(SCTP_EVENT_ADDRESS, &PeerAddrChange{AssocID: as.id, Addr: n.Addr.Addr(), Port: as.a.RemoteAddr().Port, State: s})
		}
	}
}

// pathStates has the states of an PeerAddrChange.
var pathStates = map[sctp.NotificationKind]PeerAddrState{
	sctp.NotifyPathUp: SCTP_ADDR_AVAILABLE, sctp.NotifyPathDown: SCTP_ADDR_UNREACHABLE,
	sctp.NotifyPathRemoved: SCTP_ADDR_REMOVED, sctp.NotifyPathAdded: SCTP_ADDR_ADDED,
	sctp.NotifyPrimary: SCTP_ADDR_MADE_PRIM, sctp.NotifyPathConfirmed: SCTP_ADDR_CONFIRMED,
	sctp.NotifyPathFailed: SCTP_ADDR_POTENTIALLY_FAILED,
}

// down ends the association for the socket: all that was received is delivered by now.
func (as *association) down(err error) {
	// Behind a message that was delivered in part and has no end others would look like its
	// end to a program without SCTP_EVENT_PARTIAL_DELIVERY. The end of the association tells
	// that what came last is missing.
	for _, it := range as.held {
		it.free()
	}
	as.held = nil
	for id, m := range as.incomplete {
		delete(as.incomplete, id)
		as.abandon(m)
	}
	if as.shutdown {
		as.notify(SCTP_EVENT_SHUTDOWN, &ShutdownEvent{AssocID: as.id})
		if !as.unsent {
			err = nil // all has arrived; only the end of the handshake may have been lost
		}
	}
	state := SCTP_SHUTDOWN_COMP
	if err != nil {
		state = SCTP_COMM_LOST
	}
	as.notify(SCTP_EVENT_ASSOCIATION, &AssocChange{AssocID: as.id, State: state, Error: causeOf(err)})
	c := as.lock()
	if c.many {
		delete(c.assocs, as.id)
	} else if c.peer == as {
		c.ended, c.endErr = true, endError(err)
	}
	c.waiters.wake()
	c.mu.Unlock()
	go as.port.release() // not here: it may wait for the goroutine that makes upcalls
}
