package ddpsctp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/ddp"
)

// Errors of sessions and associations.
var (
	// ErrProtocol is the end of a session whose peer sent what none of the
	// legal sequences of RFC 5043, Section 6 allows.
	ErrProtocol = errors.New("ddpsctp: illegal session sequence")
	// ErrPrivate is returned for private data over MaxPrivate.
	ErrPrivate = errors.New("ddpsctp: private data too long")
	// ErrNoStream is returned when all streams of an association are in use.
	ErrNoStream = errors.New("ddpsctp: no free stream")
	// ErrAnswered is returned when a request was answered before, or ended.
	ErrAnswered = errors.New("ddpsctp: request is not pending")
	// ErrSegment is returned for a segment larger than any MULPDU (RFC 5043,
	// Section 9).
	ErrSegment = errors.New("ddpsctp: segment cannot be sent")
	// ErrNotDDP is the end of an association whose peer did not indicate the
	// DDP adaptation (RFC 5043, Section 11.1).
	ErrNotDDP = errors.New("ddpsctp: peer does not support DDP")
	// ErrRestart is the end of the sessions of an association whose peer
	// restarted.
	ErrRestart = errors.New("ddpsctp: peer restarted")
	// ErrSelf is returned by Dial for the address of the endpoint itself.
	ErrSelf = errors.New("ddpsctp: endpoint cannot dial itself")
	// ErrClosed is returned by operations on a closed endpoint.
	ErrClosed = errors.New("ddpsctp: closed")
)

// Result tells how the passive side answered.
type Result uint8

// Results.
const (
	Accepted Result = iota + 1
	// Rejected: its consumer does not want the session.
	Rejected
	// Refused: its consumer was not asked (RFC 5043, Section 6.4).
	Refused
)

// Answer is the answer to an Initiate.
type Answer struct {
	Result Result
	// Private is the private data; it is the receiver's to keep.
	Private []byte
	// IsEnhanced tells that Enhanced is valid.
	IsEnhanced bool
	Enhanced   Enhanced
}

// Initiator is what the active side binds to a session: the sink of its
// segments, which may come even before the answer does.
type Initiator interface {
	ddp.Sink
	// Answered is called once, unless Lost or End comes instead. It must not
	// block.
	Answered(Answer)
}

// phase is where a session is on its way.
type phase uint8

const (
	phaseInitiated phase = iota // active: waiting for the answer
	phasePending                // passive: waiting for the consumer
	phaseOpen                   // accepted
	phaseDone                   // rejected, refused, or killed
)

// Session is a DDP stream session (RFC 5043, Section 6) on one pair of SCTP
// streams. It is the ddp.Channel of that stream, and takes batches of segments.
type Session struct {
	a      *Association
	sid    atomic.Uint32 // a stream identifier; a collision changes it
	active bool

	// sink is what segments go to; nil before the passive side is bound and
	// after the session was killed.
	sink atomic.Pointer[ddp.Sink]
	// next is the DDP-SSN after the last one used. The first control message
	// of each side has 0.
	next atomic.Uint32
	// high is the largest sequence number received. Only the upcall of the
	// association uses it.
	high uint64
	// got counts what the peer sent in this session, and end is the number of its
	// Terminate, 0 before. Only the upcall of the association uses them.
	got, end uint64
	// idle is when nothing of this side was outstanding on the stream any more, though
	// the peer has not ended the session: nanoseconds since 1970, or 0.
	idle atomic.Int64
	// collided is true if nothing follows the Initiates of both sides. It is set before
	// the session is in use.
	collided bool

	mu       sync.Mutex
	phase    phase     // guarded by mu
	init     Initiator // guarded by mu: active side
	first    Control   // guarded by mu: what initiated it, to try again
	receipt  *receipt  // guarded by mu: of first
	begun    bool      // guarded by mu: active side: the Initiate is on its way
	proven   bool      // guarded by mu: our first control message has arrived
	endWant  bool      // guarded by mu: Terminate waits for proven
	endSent  bool      // guarded by mu
	endAcked bool      // guarded by mu
	released bool      // guarded by mu
	complete bool      // guarded by mu: all that the peer sends in the session has come
	tries    int       // guarded by mu: collisions so far
	later    func()    // guarded by mu: called when endAcked is set; may be nil
}

// SID returns the SCTP stream identifier.
func (s *Session) SID() uint16 { return uint16(s.sid.Load()) }

// Association returns the association of the session.
func (s *Session) Association() *Association { return s.a }

// MULPDU implements ddp.Channel (RFC 5043, Section 9): the largest segment
// that needs no fragmentation and leaves room for a bundled SACK.
func (s *Session) MULPDU() int { return s.a.mulpdu() }

// Hold implements ddp.Holder: it counts against the receive buffer of the association.
func (s *Session) Hold(n int) { s.a.link.Hold(s.SID(), n) }

// Send implements ddp.Channel.
func (s *Session) Send(segs []ddp.Segment) (int, error) {
	largest := s.a.largest()
	for i := range segs {
		if segs[i].Len() > largest {
			return 0, fmt.Errorf("%w: %d bytes: at most %d", ErrSegment, segs[i].Len(), largest)
		}
	}
	n := uint32(len(segs))
	ssn := s.next.Add(n) - n
	for i := range segs {
		binary.BigEndian.PutUint16(segs[i].Frame(), uint16(ssn)+uint16(i))
	}
	return s.a.link.Segments(s.SID(), segs)
}

// SendTrain implements ddp.TrainChannel.
func (s *Session) SendTrain(t *ddp.Train) error {
	if n, largest := t.Header.Len()+t.Unit, s.a.largest(); n > largest {
		return fmt.Errorf("%w: %d bytes: at most %d", ErrSegment, n, largest)
	}
	n := uint32(t.Segments())
	return s.a.link.SendSegmented(s.SID(), uint16(s.next.Add(n)-n), t)
}

// Terminate implements ddp.Channel: it sends a Session Terminate. On a session
// that was not answered yet it takes the request back.
func (s *Session) Terminate() error {
	s.mu.Lock()
	if s.endSent || s.endWant {
		s.mu.Unlock()
		return nil
	}
	if s.phase == phaseDone {
		s.mu.Unlock()
		return nil
	}
	if !s.proven {
		// RFC 5043, Section 6.6: a control message "MUST NOT be sent if it may
		// be received before a prior" one.
		s.endWant = true
		s.mu.Unlock()
		return nil
	}
	s.endSent = true
	s.mu.Unlock()
	return s.control(uint16(s.next.Add(1)-1), &Control{Function: Terminate})
}

// Release implements ddp.Channel. The stream above may give up a peer that does not
// end the session: what still comes is dropped then.
func (s *Session) Release() {
	s.mu.Lock()
	s.released = true
	s.strip()
	if s.endSent {
		s.phase = phaseDone
	}
	s.unlock()
	s.sink.Store(nil)
}

// strip forgets what belongs to those above, whom a session that is over must not keep
// in memory: its stream may be in use for long.
func (s *Session) strip() { s.init, s.first = nil, Control{} } // mu is held

// unlock unlocks mu after changes, and makes the stream free for another session if
// nothing of this one can be outstanding in either direction (RFC 5043, Section 6.6).
func (s *Session) unlock() {
	over := s.released && s.endSent && s.endAcked
	free := over && s.complete
	switch {
	case !over || s.complete:
		s.idle.Store(0)
	case s.idle.Load() == 0:
		s.idle.Store(time.Now().UnixNano())
	}
	s.mu.Unlock()
	if free {
		s.a.free(s)
	}
}

// count notes n messages of the peer. The session is complete when its Terminate and
// all numbers before it have come.
func (s *Session) count(n int) {
	s.got += uint64(n)
	if s.end > 0 && s.got == s.end+1 {
		s.mu.Lock()
		s.complete = true
		s.unlock()
	}
}

// control sends a control message.
func (s *Session) control(ssn uint16, c *Control) error {
	return s.a.sendControl(s.SID(), ssn, c, &receipt{s: s, end: c.Function == Terminate})
}

// prove notes that the peer has our first control message, and sends a
// Terminate that had to wait for that.
func (s *Session) prove() {
	s.mu.Lock()
	s.proved()
}

// proved is prove with mu held, which it unlocks.
func (s *Session) proved() {
	end := !s.proven && s.endWant && !s.endSent && s.phase != phaseDone
	s.proven = true
	if end {
		s.endSent = true
	}
	s.mu.Unlock()
	if end {
		s.control(uint16(s.next.Add(1)-1), &Control{Function: Terminate})
	}
}

// inUse reports whether this side has not ended the session.
func (s *Session) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase != phaseDone && !s.endSent && !s.endWant
}

// Acknowledged reports whether the peer has our first control message: the Initiate,
// or the answer to one.
func (s *Session) Acknowledged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven
}

// extend makes a 64-bit sequence number of a DDP-SSN: less than 32768 messages
// are under way (RFC 5043, Section 10).
func (s *Session) extend(ssn uint16) (seq uint64, ok bool) {
	d := int64(int16(ssn - uint16(s.high)))
	if d < 0 && uint64(-d) > s.high {
		return 0, false
	}
	seq = s.high + uint64(d)
	s.high = max(s.high, seq)
	return seq, true
}

// segment takes a DDP Segment Chunk.
func (s *Session) segment(ssn uint16, seg []byte) {
	defer s.count(1)
	if p, seq := s.admit(ssn); p != nil {
		if err := (*p).Segment(seq, seg); err != nil {
			s.kill(err)
		}
	}
}

// segments takes several, numbered from ssn on.
func (s *Session) segments(ssn uint16, segs [][]byte) {
	defer s.count(len(segs))
	if p, seq := s.admit(ssn); p != nil {
		s.high = max(s.high, seq+uint64(len(segs)-1))
		if err := (*p).Segments(seq, segs); err != nil {
			s.kill(err)
		}
	}
}

// admit returns what takes the segment with the number ssn, and as which. If nothing
// does the session was killed.
func (s *Session) admit(ssn uint16) (*ddp.Sink, uint64) {
	p := s.sink.Load()
	seq, ok := s.extend(ssn)
	if p == nil || !ok || seq == 0 {
		s.kill(ErrProtocol)
		return nil, 0
	}
	if !s.active && seq < 64 { // cheap, and one early segment is proof enough
		s.prove()
	}
	return p, seq
}

// message takes a control message other than an Initiate.
func (s *Session) message(ssn uint16, c *Control) {
	if c.Function == Terminate && ssn != 0 && s.unanswered() {
		// Of an earlier session on the stream: RFC 5043, Section 6.6, the peer sends
		// none before we have its answer.
		s.a.count.dropped.Add(1)
		return
	}
	defer s.count(1)
	seq, ok := s.extend(ssn)
	if !ok {
		s.kill(ErrProtocol)
		return
	}
	p := s.sink.Load()
	if seq == 0 {
		s.answer(c)
		return
	}
	if c.Function != Terminate {
		s.kill(ErrProtocol)
		return
	}
	s.end = seq
	if p == nil {
		// The request was taken back before it was answered.
		s.kill(nil)
		return
	}
	if err := (*p).End(seq); err != nil {
		s.kill(err)
	}
}

// unanswered reports whether an Initiate of ours waits for its answer.
func (s *Session) unanswered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active && s.phase == phaseInitiated
}

// answer takes the peer's answer to our Initiate.
func (s *Session) answer(c *Control) {
	s.mu.Lock()
	if !s.active || s.phase != phaseInitiated {
		s.mu.Unlock()
		s.kill(ErrProtocol)
		return
	}
	enhanced := s.first.Function == EnhancedInitiate
	ans := Answer{Private: bytes.Clone(c.Private), Enhanced: c.Enhanced, IsEnhanced: c.Function == EnhancedAccept}
	switch c.Function {
	case Accept:
		ans.Result = Accepted
	case EnhancedAccept:
		ans.Result = Accepted
		if !enhanced {
			ans.Result = 0
		}
	case Reject:
		ans.Result = Rejected
	case EnhancedReject:
		ans.Result = Rejected
	case Terminate:
		ans.Result = Refused
	}
	if ans.Result == 0 {
		s.mu.Unlock()
		s.kill(ErrProtocol)
		return
	}
	withdrawn := s.endWant
	init := s.init
	if ans.Result == Accepted {
		s.phase = phaseOpen
		s.strip()
		s.mu.Unlock()
		if !withdrawn {
			init.Answered(ans)
		}
		s.prove() // and take back what was withdrawn meanwhile
		if init == nil {
			return // given up
		}
		if err := init.Skip(0); err != nil {
			s.kill(err)
		}
		return
	}
	// RFC 5043, Sections 6.3 and 6.4: the session is over; the peer has
	// received our only message, and sends no more. If it was taken back just
	// before, a Terminate of ours may be under way yet.
	s.endAcked = s.endAcked || !s.endSent
	s.phase, s.endSent, s.released, s.complete = phaseDone, true, true, true
	s.strip()
	s.unlock()
	s.sink.Store(nil)
	switch {
	case init == nil: // given up
	case withdrawn:
		init.Lost(ErrClosed)
	default:
		init.Answered(ans)
	}
}

// kill ends a session for a reason that is not the stream's: the peer is sent
// a Session Terminate, and what still comes is dropped (RFC 5043, Section 6.1:
// "the DDP Stream Session MUST be terminated"). The stream identifier is used again
// when the peer has ended its direction, or when there is no other.
func (s *Session) kill(err error) {
	s.mu.Lock()
	if s.phase == phaseDone || s.released {
		s.mu.Unlock()
		return
	}
	pending := s.phase == phasePending
	open := s.phase
	s.phase = phaseDone
	s.strip()
	s.a.count.killed.Add(1)
	send := !s.endSent
	s.endSent = true
	sink := s.sink.Swap(nil)
	s.released = sink == nil // else by the sink
	s.unlock()
	if send {
		ssn := uint16(0) // the passive side's answer
		if open != phasePending {
			ssn = uint16(s.next.Add(1) - 1)
		}
		s.control(ssn, &Control{Function: Terminate})
	}
	if pending {
		s.a.decided()
	}
	if err == nil {
		err = ErrProtocol
	}
	if sink != nil {
		(*sink).Lost(err)
	}
}

// lost ends a session together with its association.
func (s *Session) lost(err error) {
	s.mu.Lock()
	pending := s.phase == phasePending
	s.phase = phaseDone
	s.endSent = true
	s.strip()
	s.mu.Unlock()
	if pending {
		s.a.decided()
	}
	if sink := s.sink.Swap(nil); sink != nil {
		(*sink).Lost(err)
	}
}
