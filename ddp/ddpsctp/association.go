package ddpsctp

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
)

const (
	// bundleRoom is left in each packet for a bundled SACK without gaps (RFC
	// 5043, Section 9: "in order to allow bundling of Control Chunks").
	bundleRoom = 16
	// maxTries bounds how often an Initiate is repeated on another stream
	// because both sides chose the same one.
	maxTries = 16
	// maxPartials and maxPartial bound the fragmented messages of an
	// association being put together, in number and bytes each. A peer only
	// fragments when the path MTU falls below what it has queued.
	maxPartials = 64
	maxPartial  = 1 << 16
)

// link is what an Association needs of SCTP.
type link interface {
	// send sends an unordered message, head and then body. It copies head,
	// and references body until owner.Released. It does not block.
	send(sid uint16, ppid uint32, head, body []byte, owner ddp.Owner, more, urgent bool) error
	// maxPayload is the size of the largest message that fits a packet.
	maxPayload() int
	abort(reason string)
}

// Association is an SCTP association for DDP: up to as many sessions as it has
// streams.
type Association struct {
	link link
	ep   *Endpoint // nil in tests of this type alone
	// count is the endpoint's, or its own.
	count *counters

	sessions []atomic.Pointer[Session] // by SID
	// top is the largest MULPDU ever told: segments cut before it shrank are
	// still sent (RFC 5041, Section 3, item 2).
	top atomic.Int64

	mu     sync.Mutex
	fresh  [2]int      // guarded by mu: next SID never used, by parity
	reuse  [2][]uint16 // guarded by mu: SIDs free again, by parity
	parity int         // guarded by mu: of the SIDs this side chooses
	err    error       // guarded by mu: why the association is gone

	// parts are messages being put together. Only the upcall uses it.
	parts []partial

	onRequest func(*Request)
}

// newAssociation makes an association of n streams.
func newAssociation(l link, n int, initiator bool) *Association {
	a := &Association{link: l, count: new(counters), sessions: make([]atomic.Pointer[Session], n)}
	a.fresh = [2]int{0, 1}
	a.setInitiator(initiator)
	return a
}

// setInitiator chooses the parity of SIDs. RFC 5043 says nothing about both
// sides choosing the same stream; here the initiator of the association uses
// even ones, the other side odd ones. A collision is dealt with nevertheless.
func (a *Association) setInitiator(yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parity = 1
	if yes {
		a.parity = 0
	}
}

// mulpdu returns the MULPDU: even, so that chunks need no padding.
func (a *Association) mulpdu() int {
	m := max((a.link.maxPayload()-bundleRoom)&^3-ssnLen, minMULPDU)
	for {
		top := a.top.Load()
		if int64(m) <= top || a.top.CompareAndSwap(top, int64(m)) {
			return m
		}
	}
}

// largest returns the largest MULPDU ever told.
func (a *Association) largest() int { return max(int(a.top.Load()), minMULPDU) }

// ssnLen is the size of the DDP-SSN.
const ssnLen = 2

// Initiate opens a session: it binds init to a free stream and sends an
// Initiate, enhanced unless e is nil. It does not block.
func (a *Association) Initiate(init Initiator, bind func(*Session) error, e *Enhanced, private []byte) (*Session, error) {
	c := Control{Function: Initiate, Private: private}
	limit := MaxPrivate
	if e != nil {
		c.Function, c.Enhanced = EnhancedInitiate, *e
		limit -= enhancedLen
	}
	if len(private) > limit {
		return nil, ErrPrivate
	}
	s := &Session{a: a, active: true, phase: phaseInitiated, init: init, first: c}
	s.next.Store(1)
	sink := ddp.Sink(init)
	s.sink.Store(&sink)
	if err := bind(s); err != nil {
		return nil, err
	}
	s.mu.Lock()
	err := a.place(s)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	a.count.initiated.Add(1)
	return s, s.begin()
}

// begin sends the Initiate of a session.
func (s *Session) begin() error {
	s.mu.Lock()
	s.begun = true
	sid := s.SID()
	s.mu.Unlock()
	return s.a.sendControl(sid, 0, &s.first, &receipt{s: s})
}

// place gives a session a free SID. s.mu is held, because the upcall may find
// the session before its SID is set.
func (a *Association) place(s *Session) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	for try := range 2 {
		p := (a.parity + try) % 2 // the other half when ours is used up
		for a.fresh[p] < len(a.sessions) {
			sid := a.fresh[p]
			a.fresh[p] += 2
			if a.sessions[sid].CompareAndSwap(nil, s) {
				s.sid.Store(uint32(sid))
				return nil
			}
		}
		for n := len(a.reuse[p]); n > 0; n-- {
			sid := a.reuse[p][0]
			a.reuse[p] = append(a.reuse[p][:0], a.reuse[p][1:]...)
			if a.sessions[sid].CompareAndSwap(nil, s) {
				s.sid.Store(uint32(sid))
				return nil
			}
		}
	}
	return ErrNoStream
}

// free makes the SID of a session available again.
func (a *Association) free(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if sid := s.SID(); a.sessions[sid].CompareAndSwap(s, nil) {
		if p := sid % 2; int(sid) < a.fresh[p] {
			a.reuse[p] = append(a.reuse[p], sid)
		}
	}
}

// RemoteAddr returns the address of the peer's endpoint.
func (a *Association) RemoteAddr() sctp.Addr {
	if l, ok := a.link.(sctpLink); ok {
		return l.a.RemoteAddr()
	}
	return sctp.Addr{}
}

// Sessions returns how many sessions the association has, dead ones whose
// stream cannot be used again included.
func (a *Association) Sessions() (n int) {
	for i := range a.sessions {
		if a.sessions[i].Load() != nil {
			n++
		}
	}
	return n
}

// Err returns why the association is gone, or nil.
func (a *Association) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// sendControl sends a control message.
func (a *Association) sendControl(sid, ssn uint16, c *Control, o ddp.Owner) error {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 16+len(c.Private)), ssn)
	b = AppendControl(b, c)
	return a.link.send(sid, PPIDControl, nil, b, o, false, true)
}

// receive takes one message of the peer. It is called one at a time.
func (a *Association) receive(sid uint16, ppid uint32, msg []byte) {
	if int(sid) >= len(a.sessions) {
		a.count.dropped.Add(1) // a stream without a partner is no DDP stream
		return
	}
	s := a.sessions[sid].Load()
	if len(msg) < ssnLen {
		if s != nil {
			s.kill(ErrProtocol)
		}
		return
	}
	ssn := binary.BigEndian.Uint16(msg)
	switch {
	case ppid == PPIDSegment && s != nil:
		s.segment(ssn, msg[ssnLen:])
	case ppid == PPIDControl:
		c, ok := ParseControl(msg[ssnLen:])
		switch {
		case ok && (c.Function == Initiate || c.Function == EnhancedInitiate):
			a.initiated(sid, ssn, &c)
		case s == nil:
			a.count.dropped.Add(1) // late, or to a session that never was
		case !ok:
			s.kill(ErrProtocol)
		default:
			s.message(ssn, &c)
		}
	case s != nil:
		s.kill(ErrProtocol) // RFC 5043, Section 5.1: nothing else may be carried
	default:
		a.count.dropped.Add(1)
	}
}

// initiated takes an Initiate of the peer.
func (a *Association) initiated(sid, ssn uint16, c *Control) {
	s := &Session{a: a, phase: phasePending}
	s.sid.Store(uint32(sid))
	s.next.Store(1)
	for {
		old := a.sessions[sid].Load()
		if old != nil && !a.yield(old, ssn) || ssn != 0 {
			return
		}
		if a.sessions[sid].CompareAndSwap(old, s) {
			break
		}
		// A session of this side was placed there meanwhile.
	}
	if a.onRequest == nil || a.ep != nil && !a.ep.take() {
		// RFC 5043, Section 6.4: over the limit "the passive side MUST respond
		// to the Initiate message with a DDP Stream Terminate Message".
		a.count.refused.Add(1)
		a.sessions[sid].CompareAndSwap(s, nil)
		a.sendControl(sid, 0, &Control{Function: Terminate}, &receipt{})
		return
	}
	a.onRequest(&Request{s: s, Private: append([]byte(nil), c.Private...),
		IsEnhanced: c.Function == EnhancedInitiate, Enhanced: c.Enhanced})
}

// yield decides what becomes of a session when the peer initiates another on
// its stream. It reports whether the new one may take its place.
func (a *Association) yield(old *Session, ssn uint16) bool {
	old.mu.Lock()
	waiting := old.active && old.phase == phaseInitiated
	if waiting && !old.begun && ssn == 0 {
		// The peer was first: ours goes elsewhere.
		err := a.place(old)
		old.mu.Unlock()
		if err != nil {
			old.lost(err)
		}
		return true
	}
	over := old.phase == phaseDone || old.endSent && old.released
	old.mu.Unlock()
	switch {
	case ssn == 0 && waiting:
		a.collide(old)
		return false
	case ssn == 0 && over:
		return true
	}
	old.kill(ErrProtocol)
	return false
}

// collide deals with Initiates of both sides on one stream. Both sides see it;
// neither session can go on there, so both move to another stream, of a parity
// chosen at random. The stream is not used again.
func (a *Association) collide(s *Session) {
	a.count.collided.Add(1)
	dead := &Session{a: a, phase: phaseDone}
	dead.sid.Store(s.sid.Load())
	a.sessions[s.SID()].Store(dead)
	a.mu.Lock()
	a.parity = rand.IntN(2)
	a.mu.Unlock()
	s.mu.Lock()
	s.tries++
	again := s.tries < maxTries && a.place(s) == nil
	s.mu.Unlock()
	if !again || s.begin() != nil {
		s.lost(ErrNoStream)
	}
}

// decided notes that a pending request no longer is.
func (a *Association) decided() {
	if a.ep != nil {
		a.ep.give()
	}
}

// down ends all sessions. With again the association itself lives on.
func (a *Association) down(err error, again bool) {
	a.mu.Lock()
	if !again && a.err == nil {
		a.err = err
	}
	a.mu.Unlock()
	for i := range a.sessions {
		if s := a.sessions[i].Swap(nil); s != nil {
			s.lost(err)
		}
	}
	a.mu.Lock()
	a.fresh, a.reuse = [2]int{0, 1}, [2][]uint16{}
	a.mu.Unlock()
	a.parts = nil
}

// partial is a fragmented message being put together.
type partial struct {
	sid  uint16
	ppid uint32
	tsn  uint32 // of the fragment that comes next
	b    []byte
}

// fragment takes a piece of a message that did not come in one.
func (a *Association) fragment(sid uint16, ppid, tsn uint32, begin, end bool, data []byte) {
	if begin {
		if len(a.parts) == maxPartials {
			a.link.abort("too many fragmented messages")
			return
		}
		a.parts = append(a.parts, partial{sid, ppid, tsn + 1, append([]byte(nil), data...)})
		return
	}
	for i := range a.parts {
		p := &a.parts[i]
		if p.sid != sid || p.tsn != tsn {
			continue
		}
		p.tsn++
		if p.b = append(p.b, data...); len(p.b) > maxPartial {
			a.link.abort("fragmented message too long")
			return
		}
		if end {
			whole := *p
			last := len(a.parts) - 1
			a.parts[i], a.parts[last] = a.parts[last], partial{}
			a.parts = a.parts[:last]
			a.receive(whole.sid, whole.ppid, whole.b)
		}
		return
	}
}

// Request is a peer's Initiate, waiting for a decision.
type Request struct {
	s *Session
	// Private is the private data, the enhanced part excluded.
	Private []byte
	// IsEnhanced tells that Enhanced is valid.
	IsEnhanced bool
	Enhanced   Enhanced
}

// Pending reports whether the request can still be answered: the peer may have
// taken it back.
func (r *Request) Pending() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.phase == phasePending
}

// Association returns the association of the request.
func (r *Request) Association() *Association { return r.s.a }

// Accept accepts the request: bind gives the session to its stream, whose sink
// then gets the segments. e is the enhanced data of the answer, used if the
// request was enhanced.
func (r *Request) Accept(sink ddp.Sink, bind func(*Session) error, e Enhanced, private []byte) error {
	c := Control{Function: Accept, Private: private}
	limit := MaxPrivate
	if r.IsEnhanced {
		c.Function, c.Enhanced = EnhancedAccept, e
		limit -= enhancedLen
		if r.Enhanced.PeerToPeer {
			// RFC 6581, Section 9.2: mirror A, and offer what costs nothing: a
			// zero-length write or read needs no receive buffer.
			c.Enhanced.PeerToPeer, c.Enhanced.RTRWrite, c.Enhanced.RTRRead = true, true, true
		}
	}
	if len(private) > limit {
		return ErrPrivate
	}
	s := r.s
	s.mu.Lock()
	if s.phase != phasePending {
		s.mu.Unlock()
		return ErrAnswered
	}
	s.phase = phaseOpen
	s.mu.Unlock()
	s.a.count.accepted.Add(1)
	s.a.decided()
	if err := bind(s); err != nil {
		s.mu.Lock()
		s.phase = phasePending
		s.mu.Unlock()
		r.refuse(Terminate, nil, false)
		return err
	}
	s.sink.Store(&sink)
	if err := sink.Skip(0); err != nil {
		return err
	}
	return s.control(0, &c)
}

// Reject rejects the request at the direction of the consumer.
func (r *Request) Reject(private []byte) error {
	if len(private) > MaxPrivate {
		return ErrPrivate
	}
	f := Reject
	if r.IsEnhanced {
		f = EnhancedReject
	}
	return r.refuse(f, private, true)
}

// Refuse refuses the request without a decision of the consumer.
func (r *Request) Refuse() error { return r.refuse(Terminate, nil, true) }

// refuse answers with the only message of a session that never was.
func (r *Request) refuse(f Function, private []byte, pending bool) error {
	s := r.s
	s.mu.Lock()
	if s.phase != phasePending {
		s.mu.Unlock()
		return ErrAnswered
	}
	s.phase, s.endSent, s.released = phaseDone, true, true
	s.mu.Unlock()
	if pending {
		s.a.decided()
	}
	if f == Terminate {
		s.a.count.refused.Add(1)
	} else {
		s.a.count.rejected.Add(1)
	}
	return s.a.sendControl(s.SID(), 0, &Control{Function: f, Private: private}, &receipt{s: s, end: true})
}
