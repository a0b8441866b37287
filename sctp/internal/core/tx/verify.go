package tx

import (
	"fmt"
	"maps"

	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// Verify computes again everything that the scoreboard and its queue keep accounts of, and
// returns the first thing that does not add up: for tests. closed is true after
// [Queue.Close]; path reports whether messages may demand a path. It takes time in
// proportion to what is queued and outstanding.
func (s *Scoreboard) Verify(closed bool, path func(i int) bool) error {
	if err := s.verifyScoreboard(closed); err != nil {
		return err
	}
	if err := s.verifyRtxCopies(); err != nil {
		return err
	}
	return s.verifyQueue(closed, path)
}

// verifyScoreboard checks that bytes in flight are the sum of what is outstanding and neither
// acknowledged nor marked nor abandoned, by path.
func (s *Scoreboard) verifyScoreboard(closed bool) error {
	if n := s.Outstanding(); n < 0 || n > MaxOutstanding || n > len(s.recs) {
		return fmt.Errorf("%d TSNs outstanding", n)
	}
	type sum struct{ bytes, count, sacked int }
	flight := make([]sum, len(s.paths))
	payload, marked, missing := 0, 0, 0
	for t := s.base; t != s.next; t++ {
		r := s.rec(t)
		m := r.msg
		if m == nil {
			return fmt.Errorf("TSN %d has no message", t)
		}
		if err := s.verifyConsecutive(t); err != nil {
			return err
		}
		if int(r.path) >= len(s.paths) {
			return fmt.Errorf("TSN %d was sent on path %d", t, r.path)
		}
		f := &flight[r.path]
		in := r.state&recOut == 0
		switch {
		case r.state&recAbandoned != 0:
			if m.flags&msgAbandoned == 0 || r.state&(recAcked|recMarked) != 0 {
				return fmt.Errorf("TSN %d is abandoned, state %x, message %x", t, r.state, m.flags)
			}
		case m.flags&msgAbandoned != 0:
			return fmt.Errorf("TSN %d is not abandoned as its message is", t)
		case r.state&recAcked != 0:
			f.sacked++
		case r.state&recMarked != 0:
			marked++
		default:
			f.bytes += s.chunkSize(r)
			f.count++
			payload += int(r.size)
		}
		if got := s.marked.Has(t); got != (r.state&recMarked != 0) {
			return fmt.Errorf("TSN %d marked %v, state %x", t, got, r.state)
		}
		for i := range s.paths {
			if got := s.paths[i].set.Has(t); got != (in && int(r.path) == i) {
				return fmt.Errorf("TSN %d in flight on path %d %v, state %x", t, i, got, r.state)
			}
		}
		if s.missing.Has(t) {
			if missing++; !in || s.useRACK {
				return fmt.Errorf("TSN %d missing, state %x", t, r.state)
			}
		}
		if acked := inRuns(s.gaps, t); acked != (r.state&recAcked != 0) && r.state&recAbandoned == 0 {
			return fmt.Errorf("TSN %d in a gap block %v, state %x", t, acked, r.state)
		}
	}
	if s.marked.Len() != marked || s.missing.Len() != missing || s.payload != payload {
		return fmt.Errorf("%d marked, %d missing, %d bytes; counted %d, %d, %d", s.marked.Len(), s.missing.Len(), s.payload, marked, missing, payload)
	}
	for i := range s.paths {
		f := &s.paths[i]
		if got := (sum{f.bytes, f.count, f.rack.sacked}); got != flight[i] &&
			(s.useRACK && !closed || got.bytes != flight[i].bytes || got.count != flight[i].count) {
			return fmt.Errorf("path %d has %+v in flight, counted %+v", i, got, flight[i])
		}
		if err := s.verifyRackList(i); err != nil {
			return err
		}
	}
	// RFC 9260, Section 6.2.1: rwnd is a_rwnd less what is in flight.
	if !closed && s.rwnd+s.payload != s.awnd {
		return fmt.Errorf("rwnd %d and %d in flight are not a_rwnd %d", s.rwnd, s.payload, s.awnd)
	}
	if s.adv.Less(s.base-1) || !s.adv.Less(s.next) {
		return fmt.Errorf("Advanced.Peer.Ack.Point %d outside of %d to %d", s.adv, s.base, s.next)
	}
	for t := s.base; t.LessEq(s.adv); t++ {
		if s.rec(t).state&recAbandoned == 0 {
			return fmt.Errorf("Advanced.Peer.Ack.Point %d passed TSN %d", s.adv, t)
		}
	}
	return nil
}

// verifyConsecutive checks that the chunk after t goes on with the message of t if
// that has not ended: RFC 9260, Section 3.3.1, "TSNs for each fragment of a fragmented
// user message MUST be strictly sequential".
func (s *Scoreboard) verifyConsecutive(t seq.TSN) error {
	r := s.rec(t)
	m := r.msg
	_, _, end := m.bounds(r.off)
	whole := r.off+int64(r.size) == end && m.flags&msgOpen == 0
	if s.q.interleave || whole || m.flags&msgAbandoned != 0 || t+1 == s.next {
		return nil
	}
	next := s.rec(t + 1)
	if x := next.msg; x == nil || x.sid != m.sid || x != m && (next.off != 0 || x.flags&msgCont == 0) {
		return fmt.Errorf("TSN %d does not go on with the message of TSN %d", t+1, t)
	}
	return nil
}

func inRuns(runs []tsnRun, t seq.TSN) bool {
	for _, r := range runs {
		if r.lo.LessEq(t) && t.Less(r.hi) {
			return true
		}
	}
	return false
}

// verifyRackList checks that the chunks in flight on a path are linked, each once.
func (s *Scoreboard) verifyRackList(i int) error {
	f := &s.paths[i]
	if !s.useRACK {
		return nil
	}
	if f.rack.n != f.count {
		return fmt.Errorf("path %d: %d in the list of RACK, %d in flight", i, f.rack.n, f.count)
	}
	for n, t := 0, f.rack.head; n < f.rack.n; n, t = n+1, s.rec(t).next {
		r := s.rec(t)
		if t.Less(s.base) || !t.Less(s.next) || r.state&recOut != 0 || int(r.path) != i {
			return fmt.Errorf("path %d: TSN %d is in the list of RACK", i, t)
		}
		if n == f.rack.n-1 && t != f.rack.tail {
			return fmt.Errorf("path %d: the list of RACK ends with TSN %d", i, t)
		}
	}
	return nil
}

// verifyRtxCopies checks that the retransmission copies of outstanding chunks are there.
func (s *Scoreboard) verifyRtxCopies() error {
	x := &s.rtxCopies
	for t := s.base; t != s.next; t++ {
		ref := s.rec(t).rtxCopy
		if i := int(uint16(ref>>16) - x.base); ref != 0 && (i < x.head || i >= len(x.list) || x.list[i].mem == nil) {
			return fmt.Errorf("TSN %d is in copy %d of %d to %d", t, i, x.head, len(x.list))
		}
	}
	return nil
}

// verifyQueue checks what the queue counts.
func (s *Scoreboard) verifyQueue(closed bool, path func(int) bool) error {
	c := queueCount{q: s.q, closed: closed, path: path, seen: map[*outMsg]uint32{}, inFlight: map[uint16]int32{},
		ordered: map[uint16]int32{}}
	for t := s.base; t != s.next; t++ {
		m := s.rec(t).msg
		c.seen[m]++
		c.inFlight[m.sid]++
	}
	c.outstanding = len(c.seen)
	for m, n := range c.seen {
		if m.refs != n {
			return fmt.Errorf("a message of stream %d has %d chunks outstanding, counted %d", m.sid, m.refs, n)
		}
		if m.flags&msgUnordered == 0 {
			c.ordered[m.sid]++
		}
	}
	for sid := range s.q.streams {
		if err := c.stream(sid); err != nil {
			return err
		}
	}
	return c.compare()
}

// queueCount counts again what a queue keeps accounts of.
type queueCount struct {
	q      *Queue
	closed bool
	path   func(int) bool

	seen        map[*outMsg]uint32 // messages that wait or are outstanding, with the chunks outstanding
	outstanding int                // messages of which a chunk is
	inFlight    map[uint16]int32   // chunks outstanding by stream
	ordered     map[uint16]int32   // ordered messages that were begun, by stream

	waiting, chunks, ready, opened, waits, routed int
}

// stream counts what waits on a stream, and checks what the stream counts.
func (c *queueCount) stream(sid int) error {
	st := &c.q.streams[sid]
	if st.open != nil {
		c.opened++
		c.waits += count01(st.head == nil)
		if last := st.tail; !st.open.begun || last != nil && last.flags&msgOpen == 0 {
			return fmt.Errorf("stream %d: an open message, begun %v, is not the last", sid, st.open.begun)
		}
	}
	var prev *outMsg
	for m := st.head; m != nil; prev, m = m, m.next {
		if err := c.message(sid, m, prev); err != nil {
			return err
		}
	}
	if st.tail != prev {
		return fmt.Errorf("stream %d: wrong tail", sid)
	}
	if n := c.inFlight[uint16(sid)]; st.inFlight != n {
		return fmt.Errorf("stream %d: %d chunks outstanding, counted %d", sid, st.inFlight, n)
	}
	if n := c.ordered[uint16(sid)]; !c.closed && st.ordered != n || st.ordered > maxOrderedInFlight {
		return fmt.Errorf("stream %d: %d ordered messages outstanding, counted %d", sid, st.ordered, n)
	}
	if can := st.head != nil && c.q.mayBegin(st) && !c.q.windowFull(st); can != st.queued && !c.closed {
		return fmt.Errorf("stream %d: may send %v, scheduled %v", sid, can, st.queued)
	}
	c.ready += count01(st.queued)
	return nil
}

// message counts and checks a message that waits on a stream behind prev.
func (c *queueCount) message(sid int, m, prev *outMsg) error {
	st := &c.q.streams[sid]
	c.waiting++
	c.chunks += m.left()
	c.routed += count01(m.route != 0)
	if i := m.route.path(); i >= 0 && !c.path(i) {
		return fmt.Errorf("stream %d: a message is to go by path %d", sid, i)
	}
	if prev != nil && (m.flags&msgCont != 0) != (prev.flags&msgOpen != 0) ||
		m == st.tail && m.flags&msgOpen != 0 && st.open == nil {
		return fmt.Errorf("stream %d: a piece is missing", sid)
	}
	if m.sent >= m.length || m.prev != prev || int(m.sid) != sid || m.flags&msgDone != 0 {
		return fmt.Errorf("stream %d: a message waits with %d of %d bytes sent, flags %x", sid, m.sent, m.length, m.flags)
	}
	if _, ok := c.seen[m]; ok {
		return nil
	}
	c.seen[m] = 0
	if m.refs != 0 {
		return fmt.Errorf("stream %d: a message has %d chunks that are not outstanding", sid, m.refs)
	}
	if m.sent > 0 && m.flags&msgUnordered == 0 {
		c.ordered[m.sid]++
	}
	return nil
}

// compare compares what was counted with what the queue counts.
func (c *queueCount) compare() error {
	q := c.q
	buffered, unsent, messages := int64(0), int64(0), 0
	keys := map[uint16]int{}
	for m := range c.seen {
		if m.flags&msgDone == 0 {
			buffered += m.length - m.acked
			unsent += m.length - m.sent
			messages += int(m.count)
			if m.route&routeKeyed != 0 {
				keys[uint16(m.route>>routeKeyShift)]++
			}
		}
	}
	if q.chunks != c.chunks {
		return fmt.Errorf("queue of %d chunks at least, counted %d", q.chunks, c.chunks)
	}
	if q.buffered != buffered || q.unsent != unsent || q.messages != messages || q.waiting != c.waiting ||
		q.ready != c.ready {
		return fmt.Errorf("queue of %d bytes, %d unsent, %d messages, %d waiting, %d streams ready; counted %d, %d, %d, %d, %d (%d outstanding)",
			q.buffered, q.unsent, q.messages, q.waiting, q.ready, buffered, unsent, messages, c.waiting, c.ready, c.outstanding)
	}
	if _, ok := q.sched.next(); ok != (q.ready > 0) {
		return fmt.Errorf("the scheduler has a stream %v of %d", ok, q.ready)
	}
	if !maps.Equal(keys, q.keyUse) {
		return fmt.Errorf("messages by key %v, counted %v", q.keyUse, keys)
	}
	if q.routed != c.routed {
		return fmt.Errorf("%d messages have a route, counted %d", q.routed, c.routed)
	}
	if q.opened != c.opened || q.waits != c.waits || q.stalled != (c.waits > 0 && !q.interleave) ||
		c.waits > 1 && !q.interleave {
		return fmt.Errorf("%d messages open, %d waited for, stalled %v; counted %d, %d", q.opened, q.waits, q.stalled, c.opened, c.waits)
	}
	if q.nfree > maxFreeMessages || len(q.failed) > maxFailed {
		return fmt.Errorf("%d free messages, %d failures", q.nfree, len(q.failed))
	}
	return nil
}

// count01 returns 1 for true.
func count01(b bool) int {
	if b {
		return 1
	}
	return 0
}

// KeyOf returns the key that the message of an outstanding TSN names, if it does: for tests.
func (s *Scoreboard) KeyOf(t seq.TSN) (id uint16, named, ok bool) {
	if t.Less(s.base) || !t.Less(s.next) {
		return 0, false, false
	}
	r := s.rec(t).msg.route
	return uint16(r >> routeKeyShift), r&routeKeyed != 0, true
}

// AppendAgain appends the chunk of an outstanding TSN as it would be sent again: for tests.
func (s *Scoreboard) AppendAgain(b []byte, t seq.TSN) []byte { return s.appendChunk(b, t, s.rec(t)) }
