// Package tx is the sending half of an association's data transfer. A [Queue] holds messages, and
// cuts them into chunks in the order that a stream scheduler decides (RFC 8260, Section 3). A
// [Scoreboard] gives the chunks TSNs, and keeps what is in flight on each path, what SACKs tell
// about it, and what is to be retransmitted: by miss indications (RFC 9260, Section 7.2.4) or by
// RACK-TLP (RFC 8985). Both abandon messages under partial reliability policies (RFC 3758, RFC
// 7496). Congestion control, pacing and timers are the business of the caller, who says to which
// path a chunk goes, and when.
package tx

import (
	"errors"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

const (
	// MaxHeader is the largest Message.Header.
	MaxHeader = 64
	// messageCharge is what each message counts against the limit of the send
	// buffer besides its bytes: the size of its record. Without it a flood of
	// tiny messages would hold many times the limit.
	messageCharge = 192
	// softCharge is what each message counts against the soft limit: what it
	// takes of the processor's caches until it is acknowledged, with its record, its
	// copy and the records of its chunks, and a margin.
	softCharge = 2048
	// maxFreeMessages bounds the message records kept for reuse.
	maxFreeMessages = 4096
	// maxOrderedInFlight bounds the ordered messages of a stream that carry
	// DATA and are not acknowledged. RFC 9260, Section 6.1: "the data sender
	// MUST NOT have more than 2^16 - 1 ordered user messages in the current send
	// window". Half of that keeps any two of them apart in serial number
	// arithmetic.
	maxOrderedInFlight = 1<<15 - 1
	// maxFailed bounds the abandoned messages that wait to be told of.
	maxFailed = 64
	// minFragment is the least payload worth a chunk header when a message is
	// cut to fill a packet.
	minFragment = 64
)

// Errors of the send queue.
var (
	// ErrWouldBlock is returned by Send when the send buffer is full.
	ErrWouldBlock = errors.New("core: send buffer is full")
	// ErrStream is returned for a stream outside the negotiated range.
	ErrStream = errors.New("core: no such stream")
	// ErrNoUserData is returned for a message without a byte: SCTP cannot carry
	// one (RFC 9260, Section 6.2).
	ErrNoUserData = errors.New("core: empty message")
	// ErrRestart is given to the owners of messages, and is the outcome of requests, that
	// were not acknowledged when the peer restarted (RFC 9260, Section 5.2.4, A).
	ErrRestart = errors.New("core: peer restarted")
	// ErrTooLong is returned for a message that would have to be fragmented where
	// that is not allowed.
	ErrTooLong = errors.New("core: message does not fit one chunk")
	// ErrHeaderTooLong is returned for a Header longer than MaxHeader.
	ErrHeaderTooLong = errors.New("core: message header too long")
	// ErrAbandoned is what the Owner of a message is told that was given up
	// under its partial reliability policy (RFC 3758).
	ErrAbandoned = errors.New("core: message abandoned")
)

// Queue holds the messages that wait to be sent or acknowledged, per stream.
// It cuts them into fragments only when a packet has space (so that the path
// MTU of that moment counts), in the order a stream scheduler decides.
//
// While an association carries DATA chunks, a message that was begun is sent to
// its end before another one begins, because its fragments need consecutive
// TSNs (RFC 9260, Section 6.9); with I-DATA the scheduler is asked for every
// fragment.
type Queue struct {
	streams    []outStream // grown to the highest stream in use
	nstreams   int         // streams allowed
	limit      int64
	soft       int64 // no message is taken with this much buffered; 0: no bound
	lowRTT     bool  // nor one of lowRTTMessage with tuneLowRTT
	buffered   int64 // bytes of messages not acknowledged or abandoned
	unsent     int64 // of them not given a TSN
	messages   int   // messages not fully acknowledged or abandoned
	waiting    int   // of them with bytes to send
	chunks     int   // messages with bytes to send, those of a segmented send one by one
	ready      int   // streams that may send
	interleave bool
	partial    bool // the peer supports partial reliability
	sched      scheduler
	kind       Scheduler
	borrowed   *outMsg        // see Message.Borrowed
	cur        *outMsg        // DATA: the message begun and not ended
	routed     int            // messages with bytes to send that have a route
	route      route          // of the packet being built, if there are any
	key        route          // of that packet; 0 is the active one
	keyUse     map[uint16]int // messages not acknowledged or abandoned that name a key
	opened     int            // streams with an open message
	waits      int            // of them begun ones without a piece to send
	keyFreed   bool           // the last message that named some key was acknowledged or abandoned
	stalled    bool           // DATA: one of those begun waits, and nothing may be sent before its next piece
	arrivals   uint64
	free       *outMsg
	nfree      int
	released   []Release
	failed     []Failed // messages abandoned, for events
	blocked    bool     // a Push was refused
	large      bool     // of lowRTTMessage bytes or more
	unblocked  bool     // there is room again since
	droppable  dropHeap
	sb         *Scoreboard // set by NewScoreboard; nil in tests of the queue alone
	maxChunk   int         // no chunk is made larger; 0: no bound besides the packet
	held       bool        // all streams are paused
	holdFence  uint64      // messages that arrived before it pass

	// Abandoned counts messages given up before and after a part of them was
	// sent (RFC 7496, Section 4.3).
	abandonedUnsent, abandonedSent uint64

	// What most associations need, in the same place.
	firstStream   [1]outStream
	firstSched    roundRobin
	firstMsg      outMsg
	firstReleases [2]Release
}

// outStream is one outgoing stream.
type outStream struct {
	head, tail *outMsg // messages with bytes to send
	mid, umid  uint32  // next MIDs; the SSN is the low half of mid
	ordered    int32   // ordered messages begun and not acknowledged
	inFlight   int32   // chunks not cumulatively acknowledged
	skip       [2]int32
	queued     bool // the scheduler knows it
	paused     bool
	fence      uint64       // messages that arrived before it pass a pause
	open       *OpenMessage // nil unless the last message has not ended
}

// outMsg is a queued message. It is pooled: it lives until nothing refers to it.
type outMsg struct {
	msgState
	hdr  [MaxHeader]byte
	runs *runs // nil until a message of this record had some
}

// msgState is what is cleared when a message record is reused.
type msgState struct {
	next      *outMsg
	prev      *outMsg
	body      []byte
	owner     Owner
	gone      int64 // bytes of the body before body, which are in packets and their retransmission copies
	length    int64 // header and body
	sent      int64 // bytes given a TSN
	at, end   int64 // what is sent next: all of it, or one message of a segmented send
	acked     int64 // bytes cumulatively acknowledged
	arrival   uint64
	expires   clock.Time
	segmented segmented
	ppid      uint32
	mid       uint32
	fsn       uint32  // of the next fragment
	refs      uint32  // chunks in the scoreboard
	count     uint32  // messages
	first     seq.TSN // of the first fragment
	last      seq.TSN // of the last fragment so far
	maxRtx    uint32
	priority  uint32
	dropIdx   int32 // place in the heap of droppable messages, or -1
	sid       uint16
	hdrLen    uint8
	flags     msgFlags
	route     route
}

type msgFlags uint8

const (
	msgUnordered msgFlags = 1 << iota
	msgImmediate
	msgLimitRtx
	msgAbandoned
	msgDone // every byte acknowledged or abandoned, owner released
	msgOpen // a piece, and not the last
	msgCont // a piece, and not the first
)

// NewQueue returns a queue for up to limit bytes on nstreams streams.
func NewQueue(limit, nstreams int, kind Scheduler) *Queue {
	return new(Queue).Init(limit, nstreams, kind)
}

// Init makes a queue of one that is all zero.
func (q *Queue) Init(limit, nstreams int, kind Scheduler) *Queue {
	q.limit, q.nstreams, q.kind = int64(limit), nstreams, kind
	if q.sched = &q.firstSched; kind == SchedRR {
		q.firstSched.reset()
	} else {
		q.sched = newScheduler(kind)
	}
	q.firstMsg.dropIdx = -1
	q.free, q.nfree = &q.firstMsg, 1
	q.released = q.firstReleases[:0]
	return q
}

// SetInterleaving makes the queue produce I-DATA, if on. It must be called
// before the first fragment is produced.
func (q *Queue) SetInterleaving(on bool) { q.interleave = on }

// Interleaving reports whether fragments go as I-DATA.
func (q *Queue) Interleaving() bool { return q.interleave }

// SetPartialReliability tells whether the peer understands FORWARD-TSN. Until
// it does, no message is abandoned of which a part was sent.
func (q *Queue) SetPartialReliability(on bool) { q.partial = on }

// SetLimit changes the limit of the buffer, in bytes.
func (q *Queue) SetLimit(limit int) { q.limit = int64(limit); q.checkRoom() }

// SetStreams sets how many streams there are: after the handshake, or when
// streams are added. Messages queued on streams that do not exist are released
// with ErrStream.
func (q *Queue) SetStreams(n int) {
	q.nstreams = n
	for sid := n; sid < len(q.streams); sid++ {
		st := &q.streams[sid]
		for m := st.head; m != nil && m.sent == 0; m = st.head {
			q.unlink(st, m)
			q.finish(m, ErrStream)
			q.recycle(m)
			q.closeOpen(st)
		}
		q.reschedule(uint16(sid))
	}
}

// Push takes a message. It returns ErrWouldBlock when the buffer is full; a
// message is always taken when the buffer is empty or m.Force is set. Under
// partial reliability it first abandons messages of lower priority.
func (q *Queue) Push(now clock.Time, m *Message) error {
	n, count := m.Size()
	switch {
	case n == 0:
		return ErrNoUserData
	case len(m.Header) > MaxHeader:
		return ErrHeaderTooLong
	case int(m.SID) >= q.nstreams:
		return ErrStream
	case m.SegmentSize != 0 && !m.validSegmented():
		return ErrSegmented
	}
	if m.Of != nil || q.opened > 0 {
		if err := q.checkPiece(m); err != nil {
			return err
		}
	}
	if !m.Force && !q.fits(n+int64(count-1)*messageCharge) && !q.starved(m) &&
		!(m.Droppable && q.makeRoom(n, m.Priority)) {
		q.blocked, q.large = true, n >= lowRTTMessage
		return ErrWouldBlock
	}
	o := q.take(m, n, count)
	if m.SegmentSize != 0 {
		o.beginSegmented(m)
	}
	if m.Unordered {
		o.flags |= msgUnordered
	}
	if m.Borrowed {
		q.borrowed = o
	}
	if m.Immediate {
		o.flags |= msgImmediate
	}
	if m.LimitRtx {
		o.flags |= msgLimitRtx
		o.maxRtx = m.MaxRtx
	}
	if m.Lifetime > 0 {
		o.expires = now + m.Lifetime
	}
	if m.Droppable {
		o.priority = m.Priority
		q.droppable.push(o)
	}
	q.unsent += n
	q.waiting++
	q.chunks += count
	if o.route = m.route; o.route != 0 {
		q.routed++
		q.useKey(o.route, 1)
	}
	st := q.stream(m.SID)
	if m.Of != nil {
		q.pushPiece(st, o, m)
	}
	if st.tail == nil {
		st.head, st.tail = o, o
		q.reschedule(m.SID)
	} else {
		o.prev = st.tail
		st.tail.next = o
		st.tail = o
	}
	return nil
}

// take makes a record of m, which has n bytes and is so many messages, and counts them in.
func (q *Queue) take(m *Message, n int64, count int) *outMsg {
	o := q.alloc()
	o.body, o.owner, o.length, o.end, o.count = m.Body, m.Owner, n, n, uint32(count)
	o.ppid, o.sid, o.hdrLen = m.PPID, m.SID, uint8(copy(o.hdr[:], m.Header))
	o.arrival = q.arrivals
	if m.runs != nil {
		o.setRuns(m.runs)
	}
	q.arrivals++
	q.buffered += n
	q.messages += count
	return o
}

func (q *Queue) fits(n int64) bool {
	if q.messages == 0 {
		return true
	}
	return q.charge()+n+messageCharge <= q.limit && (q.soft == 0 || q.softCharge() < q.soft) &&
		(!q.lowRTT || n < lowRTTMessage || q.buffered < tuneLowRTT)
}

// FlightLimit returns how many bytes may be sent and not cumulatively acknowledged
// before the buffer has no room for new ones.
func (q *Queue) FlightLimit() int64 { return q.limit - (q.buffered - q.unsent) }

// SetSoftLimit changes from how many buffered bytes on no message is taken, and whether
// tuneLowRTT counts.
func (q *Queue) SetSoftLimit(n int64, near bool) {
	if n != q.soft || near != q.lowRTT {
		q.soft, q.lowRTT = n, near
		q.checkRoom()
	}
}

func (q *Queue) charge() int64 { return q.buffered + int64(q.messages)*messageCharge }

func (q *Queue) softCharge() int64 { return q.buffered + int64(q.messages)*softCharge }

// stream returns the state of a stream, which may move when another is asked
// for.
func (q *Queue) stream(sid uint16) *outStream {
	if int(sid) >= len(q.streams) {
		if sid == 0 {
			q.streams = q.firstStream[:]
			return &q.streams[0]
		}
		n := max(int(sid)+1, min(2*len(q.streams), q.nstreams))
		s := make([]outStream, n)
		copy(s, q.streams)
		q.streams = s
	}
	return &q.streams[sid]
}

// reschedule tells the scheduler whether sid has something to send.
func (q *Queue) reschedule(sid uint16) {
	st := &q.streams[sid]
	can := st.head != nil && q.mayBegin(st) && !q.windowFull(st)
	if can == st.queued {
		return
	}
	st.queued = can
	if can {
		q.ready++
		q.sched.add(sid, st.head.arrival)
	} else {
		q.ready--
		q.sched.remove(sid)
	}
}

// windowFull reports whether the next message of the stream has to wait for an
// SSN (see maxOrderedInFlight).
func (q *Queue) windowFull(st *outStream) bool {
	return !q.interleave && st.ordered >= maxOrderedInFlight &&
		st.head.sent == 0 && st.head.flags&(msgUnordered|msgCont) == 0
}

func (q *Queue) alloc() *outMsg {
	m := q.free
	if m == nil {
		return &outMsg{msgState: msgState{dropIdx: -1}}
	}
	q.free = m.next
	q.free.prefetch() // for the next message
	q.nfree--
	m.next = nil
	return m
}

// recycle takes back a message that is done, off its stream and without chunks
// in the scoreboard.
func (q *Queue) recycle(m *outMsg) {
	if m.refs != 0 || m.flags&msgDone == 0 {
		return
	}
	if q.nfree >= maxFreeMessages {
		return
	}
	m.msgState = msgState{}
	m.next, m.dropIdx = q.free, -1
	q.free = m
	q.nfree++
}

// unlink takes m off its stream: nothing of it is left to send. The caller
// reschedules the stream.
func (q *Queue) unlink(st *outStream, m *outMsg) {
	if m.prev == nil {
		st.head = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		st.tail = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.next, m.prev = nil, nil
	q.waiting--
	if m.sent < m.length {
		q.chunks -= m.left()
	}
	if m.route != 0 {
		q.routed--
	}
	if q.cur == m {
		q.cur = nil
	}
}

// finish takes a message out of the accounts and releases its owner.
func (q *Queue) finish(m *outMsg, err error) {
	m.flags |= msgDone
	q.buffered -= m.length - m.acked
	q.unsent -= m.length - m.sent
	q.messages -= int(m.count)
	if m.route != 0 {
		q.useKey(m.route, -1)
	}
	if m.dropIdx >= 0 {
		q.droppable.remove(m)
	}
	if m.owner != nil {
		q.released = append(q.released, Release{m.owner, err})
	}
	if err == ErrAbandoned && len(q.failed) < maxFailed {
		q.failed = append(q.failed, Failed{m.sid, m.ppid})
	}
	m.owner, m.body, m.segmented.headers = nil, nil, nil
	if m.runs != nil {
		m.runs.list = nil
	}
	if q.borrowed == m {
		q.borrowed = nil
	}
	q.checkRoom()
}

// unref drops a chunk of m that left the scoreboard, n bytes long.
func (q *Queue) unref(m *outMsg, n int) { q.unrefBulk(m, n, 1) }

// unrefBulk is unref for so many chunks with n bytes in all.
func (q *Queue) unrefBulk(m *outMsg, n, chunks int) {
	m.refs -= uint32(chunks)
	st := &q.streams[m.sid]
	st.inFlight -= int32(chunks)
	if q.waits > 0 && st.inFlight == 0 && st.open != nil && st.head == nil && q.blocked {
		q.blocked, q.unblocked = false, true // see starved
	}
	if m.flags&msgDone == 0 {
		m.acked += int64(n)
		q.buffered -= int64(n)
		if m.acked == m.length {
			q.finish(m, nil)
		} else if q.blocked {
			q.checkRoom()
		}
	}
	if m.refs == 0 && m.flags&msgDone != 0 {
		if m.flags&msgUnordered == 0 {
			st.ordered--
			if st.ordered == maxOrderedInFlight-1 && st.head != nil {
				q.reschedule(m.sid)
			}
		}
		q.recycle(m)
	}
}
