package ddpsctp

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
)

// bundleRoom is left in each packet for a bundled SACK without gaps (RFC 5043,
// Section 9: "in order to allow bundling of Control Chunks").
const bundleRoom = 16

// Association is an SCTP association for DDP, or what a Link has in place of one: up to as many sessions as it
// has streams.
type Association struct {
	link Link
	ep   *Endpoint // over SCTP, nil in tests of this type alone
	acc  *Acceptor
	// count is that of acc.
	count *counters
	// discarded is set once Dial does not return the association any more.
	discarded atomic.Bool
	waiting   atomic.Int32 // requests that the consumer is to decide about

	sessions []atomic.Pointer[Session] // by SID
	// top is the largest MULPDU ever told: segments cut before it shrank are
	// still sent (RFC 5041, Section 3, item 2).
	top atomic.Int64

	mu     sync.Mutex
	turn   [2]int // guarded by mu: the SID to try next, by parity
	parity int    // guarded by mu: of the SIDs this side chooses
	err    error  // guarded by mu: why the association is gone

	// parts are messages being put together, by their number. Only the upcall uses
	// it.
	parts map[uint64]*partial
	// run is what waits for the pieces that come at once, nil if nothing does. Only
	// the upcall uses it.
	run *run
	// unacked is what the control messages take that the peer has not acknowledged.
	unacked atomic.Int64
}

// NewAssociation makes an association of n streams over link, the requests of whose peer go to acc. For other lower
// layers than SCTP, which have an Endpoint of their own: that calls Receive and Down.
func NewAssociation(link Link, n int, acc *Acceptor) *Association {
	a := &Association{
		link: link, acc: acc, count: &acc.count, sessions: make([]atomic.Pointer[Session], n), turn: [2]int{0, 1},
	}
	a.choose()
	return a
}

// mulpdu returns the MULPDU: even, so that chunks need no padding.
func (a *Association) mulpdu() int {
	m := max((a.link.MaxPayload()-bundleRoom)&^3-ssnLen, minMULPDU)
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
func (a *Association) Initiate(
	init Initiator, bind func(*Session) error, e *Enhanced, private []byte,
) (*Session, error) {
	c := Control{Function: Initiate, Private: private}
	limit := MaxPrivate
	if e != nil {
		c.Function, c.Enhanced = EnhancedInitiate, *e
		limit -= enhancedLen
	}
	if len(private) > limit {
		return nil, privateError(len(private), limit)
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
	a.admit()
	return s, s.begin()
}

// begin sends the Initiate of a session.
func (s *Session) begin() error {
	s.mu.Lock()
	r := &receipt{s: s}
	s.begun, s.receipt = true, r
	sid, first := s.SID(), s.first
	s.mu.Unlock()
	return s.a.sendControl(sid, 0, &first, r)
}

// Link returns what carries the association.
func (a *Association) Link() Link { return a.link }

// RemoteAddr returns the address of the peer's endpoint, as far as it is confirmed; none if the association is not
// over SCTP.
func (a *Association) RemoteAddr() sctp.Addr {
	if l, ok := a.link.(sctpLink); ok {
		return l.a.ConfirmedAddr()
	}
	return sctp.Addr{}
}

// Sessions returns how many streams carry a session, or one that is over, but whose
// end the peer has not acknowledged or not said.
func (a *Association) Sessions() (n int) {
	for i := range a.sessions {
		if a.sessions[i].Load() != nil {
			n++
		}
	}
	return n
}

// Discard makes Dial of the endpoint open another association to the peer instead of
// returning this one, which was found to be of no use.
func (a *Association) Discard() { a.discarded.Store(true) }

// Discarded reports whether Discard was called.
func (a *Association) Discarded() bool { return a.discarded.Load() }

// AbortUnused aborts the association unless a session is in use that this side has not
// ended. It reports whether it did.
func (a *Association) AbortUnused(reason string) bool {
	for i := range a.sessions {
		if s := a.sessions[i].Load(); s != nil && s.inUse() {
			return false
		}
	}
	a.link.Abort(reason)
	return true
}

// Err returns why the association is gone, or nil.
func (a *Association) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// controlCost estimates the memory of a control message without its bytes until it is
// acknowledged: its session, its receipt, and its place in the send queue.
const controlCost = 512

// Control messages that the peer has not acknowledged may take maxUnacked bytes for
// each stream, and minUnacked at least, for the peer to be answered. That is two of the
// largest: a peer that keeps to the protocol initiates one session at a time on a stream,
// and the next one when it has the answer; its acknowledgement of that may still be on
// its way.
const (
	maxUnacked = 2 * (controlCost + MaxPrivate)
	minUnacked = 64 << 10
)

// overdue reports whether the peer has left too much unacknowledged.
func (a *Association) overdue() bool {
	return a.unacked.Load() > max(minUnacked, int64(len(a.sessions))*maxUnacked)
}

// sendControl sends a control message.
func (a *Association) sendControl(sid, ssn uint16, c *Control, r *receipt) error {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 16+len(c.Private)), ssn)
	b = AppendControl(b, c)
	r.cost = int64(controlCost + len(b))
	a.unacked.Add(r.cost)
	err := a.link.Control(sid, b, r)
	if err != nil {
		a.unacked.Add(-r.cost)
	}
	return err
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

// onProbation notes that there are more or fewer requests that the consumer is to decide
// about: as long as there are some the peer has time.
func (a *Association) onProbation(pending int32) {
	if a.waiting.Add(pending) > 0 {
		a.link.ExtendProbation(-1)
	} else {
		a.link.ExtendProbation(sctp.DefaultProbationTimeout)
	}
}

// admit ends the probation: the consumers of both sides have agreed on a session.
func (a *Association) admit() { a.link.Admit() }

// decided notes that a pending request no longer is.
func (a *Association) decided() {
	a.onProbation(-1)
	a.acc.give()
}

// Down ends all sessions, for the reason err. With again the association itself lives on, with a peer that has
// restarted. Like Receive it is called by the lower layer, one call at a time, with no lock held.
func (a *Association) Down(err error, again bool) {
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
	a.choose() // a peer that restarted has another tag
	for id, p := range a.parts {
		a.forget(id, p)
	}
}
