package core

import (
	"fmt"
	"maps"

	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// checkInvariants computes again everything that an association keeps accounts of and
// returns the first thing that does not add up. It is to be called between
// calls of the association, and takes time in proportion to what is outstanding
// and held.
func checkInvariants(a *Assoc) error {
	for _, check := range []func(*Assoc) error{checkSendAccounts, checkQueueAccounts, checkPaths, checkTimers,
		checkTracker, checkReceiveAccounts, checkQueues, checkSlowReasons} {
		if err := check(a); err != nil {
			return fmt.Errorf("%v: %w", a.state, err)
		}
	}
	return nil
}

// checkSlowReasons finds the reasons for the slow path anew: a feature that forgot to set
// its bit would leave a fast path open that does not know of it.
func checkSlowReasons(a *Assoc) error {
	got, want := a.slow, a.findSlowReasons()
	if a.state == Closed { // nothing finds the others any more
		got, want = got&slowState, slowState
	}
	if got != want {
		return fmt.Errorf("reasons for the slow path are %014b, found %014b", got, want)
	}
	return nil
}

// checkSendAccounts checks the scoreboard: bytes in flight are the sum of what
// is outstanding and neither acknowledged nor marked nor abandoned, by path.
func checkSendAccounts(a *Assoc) error {
	s := a.tx.sb
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
		if err := checkConsecutive(s, t); err != nil {
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
		if got := (sum{f.bytes, f.count, f.rack.sacked}); got != flight[i] && (s.useRACK && a.state != Closed || got.bytes != flight[i].bytes || got.count != flight[i].count) {
			return fmt.Errorf("path %d has %+v in flight, counted %+v", i, got, flight[i])
		}
		if err := checkRackList(s, i); err != nil {
			return err
		}
	}
	// RFC 9260, Section 6.2.1: rwnd is a_rwnd less what is in flight.
	if a.state != Closed && s.rwnd+s.payload != s.awnd {
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

// checkConsecutive checks that the chunk after t goes on with the message of t if
// that has not ended: RFC 9260, Section 3.3.1, "TSNs for each fragment of a fragmented
// user message MUST be strictly sequential".
func checkConsecutive(s *Scoreboard, t seq.TSN) error {
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

// checkRackList checks that the chunks in flight on a path are linked, each once.
func checkRackList(s *Scoreboard, i int) error {
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

// checkQueueAccounts checks the send queue.
func checkQueueAccounts(a *Assoc) error {
	q, s := a.tx.q, a.tx.sb
	seen := map[*outMsg]uint32{}
	inFlight := map[uint16]int32{}
	for t := s.base; t != s.next; t++ {
		m := s.rec(t).msg
		seen[m]++
		inFlight[m.sid]++
	}
	refs := len(seen)
	ordered := map[uint16]int32{}
	for m, n := range seen {
		if m.refs != n {
			return fmt.Errorf("a message of stream %d has %d chunks outstanding, counted %d", m.sid, m.refs, n)
		}
		if m.flags&msgUnordered == 0 {
			ordered[m.sid]++
		}
	}
	waiting, chunks, ready, opened, waits, routed := 0, 0, 0, 0, 0, 0
	for sid := range q.streams {
		st := &q.streams[sid]
		var prev *outMsg
		if st.open != nil {
			opened++
			waits += count01(st.head == nil)
			if last := st.tail; !st.open.begun || last != nil && last.flags&msgOpen == 0 {
				return fmt.Errorf("stream %d: an open message, begun %v, is not the last", sid, st.open.begun)
			}
		}
		for m := st.head; m != nil; prev, m = m, m.next {
			waiting++
			chunks += m.left()
			routed += count01(m.route != 0)
			if i := m.route.path(); i >= len(a.paths) || i >= 0 && a.paths[i].gone {
				return fmt.Errorf("stream %d: a message is to go by path %d", sid, i)
			}
			if prev != nil && (m.flags&msgCont != 0) != (prev.flags&msgOpen != 0) || m == st.tail && m.flags&msgOpen != 0 && st.open == nil {
				return fmt.Errorf("stream %d: a piece is missing", sid)
			}
			if m.sent >= m.length || m.prev != prev || int(m.sid) != sid || m.flags&msgDone != 0 {
				return fmt.Errorf("stream %d: a message waits with %d of %d bytes sent, flags %x", sid, m.sent, m.length, m.flags)
			}
			if _, ok := seen[m]; !ok {
				seen[m] = 0
				if m.refs != 0 {
					return fmt.Errorf("stream %d: a message has %d chunks that are not outstanding", sid, m.refs)
				}
				if m.sent > 0 && m.flags&msgUnordered == 0 {
					ordered[m.sid]++
				}
			}
		}
		if st.tail != prev {
			return fmt.Errorf("stream %d: wrong tail", sid)
		}
		if st.inFlight != inFlight[uint16(sid)] {
			return fmt.Errorf("stream %d: %d chunks outstanding, counted %d", sid, st.inFlight, inFlight[uint16(sid)])
		}
		if a.state != Closed && st.ordered != ordered[uint16(sid)] || st.ordered > maxOrderedInFlight {
			return fmt.Errorf("stream %d: %d ordered messages outstanding, counted %d", sid, st.ordered, ordered[uint16(sid)])
		}
		if can := st.head != nil && q.mayBegin(st) && !q.windowFull(st); can != st.queued && a.state != Closed {
			return fmt.Errorf("stream %d: may send %v, scheduled %v", sid, can, st.queued)
		}
		if st.queued {
			ready++
		}
	}
	buffered, unsent, messages := int64(0), int64(0), 0
	keys := map[uint16]int{}
	for m := range seen {
		if m.flags&msgDone == 0 {
			buffered += m.length - m.acked
			unsent += m.length - m.sent
			messages += int(m.count)
			if m.route&routeKeyed != 0 {
				keys[uint16(m.route>>routeKeyShift)]++
			}
		}
	}
	if q.chunks != chunks {
		return fmt.Errorf("queue of %d chunks at least, counted %d", q.chunks, chunks)
	}
	if q.buffered != buffered || q.unsent != unsent || q.messages != messages || q.waiting != waiting || q.ready != ready {
		return fmt.Errorf("queue of %d bytes, %d unsent, %d messages, %d waiting, %d streams ready; counted %d, %d, %d, %d, %d (%d outstanding)",
			q.buffered, q.unsent, q.messages, q.waiting, q.ready, buffered, unsent, messages, waiting, ready, refs)
	}
	if _, ok := q.sched.next(); ok != (q.ready > 0) {
		return fmt.Errorf("the scheduler has a stream %v of %d", ok, q.ready)
	}
	if !maps.Equal(keys, q.keyUse) {
		return fmt.Errorf("messages by key %v, counted %v", q.keyUse, keys)
	}
	if q.routed != routed {
		return fmt.Errorf("%d messages have a route, counted %d", q.routed, routed)
	}
	if q.opened != opened || q.waits != waits || q.stalled != (waits > 0 && !q.interleave) || waits > 1 && !q.interleave {
		return fmt.Errorf("%d messages open, %d waited for, stalled %v; counted %d, %d", q.opened, q.waits, q.stalled, opened, waits)
	}
	if q.nfree > maxFreeMessages || len(q.failed) > maxFailed {
		return fmt.Errorf("%d free messages, %d failures", q.nfree, len(q.failed))
	}
	return nil
}

// checkPaths checks what RFC 9260, Section 7.2 says of windows, and the states
// of paths.
func checkPaths(a *Assoc) error {
	if len(a.paths) == 0 || len(a.timers.path) != len(a.paths) || len(a.tx.sb.paths) < len(a.paths) || a.NumPaths() > MaxPeerAddrs {
		return fmt.Errorf("%d paths, timers for %d, accounts for %d", len(a.paths), len(a.timers.path), len(a.tx.sb.paths))
	}
	if a.primary >= len(a.paths) || a.paths[a.primary].gone || a.NumPaths() == 0 {
		return fmt.Errorf("path %d of %d is the primary one", a.primary, len(a.paths))
	}
	for i := range a.paths {
		p := &a.paths[i]
		f := a.tx.sb.Flight(i)
		switch {
		case p.gone && f > 0:
			return fmt.Errorf("removed path %d has %d bytes in flight", i, f)
		case p.gone:
		case a.state.connected() && len(a.local) > 0 && !a.sendsFrom(p.home):
			return fmt.Errorf("path %d sends from %v, we have %v, leaving %v", i, p.home, a.local, a.asc.leaving)
		case p.cc.Cwnd() < p.pmdcs() || p.cc.Cwnd() > cc.DefaultMaxWindow:
			return fmt.Errorf("path %d has a window of %d, packets of %d", i, p.cc.Cwnd(), p.pmdcs())
		case p.cc.Ssthresh() <= 0:
			return fmt.Errorf("path %d has ssthresh %d", i, p.cc.Ssthresh())
		case p.mtu < MinMTU || p.mtu > MaxPacket || p.mtu%4 != 0:
			return fmt.Errorf("path %d takes packets of %d bytes", i, p.mtu)
		case p.rto.Value() < clock.Time(a.cfg.RTOMin) || p.rto.Value() > clock.Time(a.cfg.RTOMax):
			return fmt.Errorf("path %d has RTO %d", i, p.rto.Value())
		case p.pf && !p.active:
			return fmt.Errorf("path %d is potentially failed and inactive", i)
		case p.errors > p.par.maxRetrans && p.active && p.par.maxRetrans == a.cfg.PathMaxRetrans:
			return fmt.Errorf("path %d is active after %d errors", i, p.errors)
		}
	}
	if a.state != Closed && a.errors > a.cfg.AssocMaxRetrans {
		return fmt.Errorf("alive after %d errors", a.errors)
	}
	return nil
}

// checkTimers checks that timers run when they are needed, and only then.
func checkTimers(a *Assoc) error {
	t := &a.timers
	if a.state == Closed {
		if at := a.NextTimeout(); at != 0 || t.next() != 0 {
			return fmt.Errorf("a timer is to expire at %d", at)
		}
		return nil
	}
	for _, x := range []struct {
		name string
		kind timerKind
		want bool
	}{
		{"T1", timerT1, a.state == CookieWait || a.state == CookieEchoed},
		{"T2", timerT2, a.state == ShutdownSent || a.state == ShutdownAckSent},
		{"T4", timerT4, len(a.asc.chunk) > 0 && !a.asc.send},
	} {
		if x.kind == timerT4 && (!x.want || !a.state.canSendData()) {
			continue // it may still run
		}
		if t.running(x.kind) != x.want {
			return fmt.Errorf("timer %s runs %v", x.name, !x.want)
		}
	}
	if a.rc.outstanding() != nil && !a.rc.send && a.state.canSendData() && !t.running(timerReconf) {
		return fmt.Errorf("no timer for an outstanding RE-CONFIG")
	}
	s := a.tx.sb
	for i := range a.paths {
		run := t.runningPath(timerT3, i)
		if a.state.canSendData() && s.FlightChunks(i) > 0 && !run {
			return fmt.Errorf("no T3 on path %d with %d bytes in flight", i, s.Flight(i))
		}
		if run && (s.Outstanding() == 0 || a.paths[i].gone) {
			return fmt.Errorf("T3 runs on path %d, %d TSNs outstanding", i, s.Outstanding())
		}
		// RFC 9260, Section 8.3: idle paths are probed.
		p := &a.paths[i]
		if a.state.heartbeating() && !p.gone && p.par.hbInterval >= 0 && !p.hb.pending && !t.runningPath(timerHB, i) {
			return fmt.Errorf("path %d is not probed", i)
		}
		if p.hb.waiting && !t.runningPath(timerHB, i) {
			return fmt.Errorf("path %d waits for the answer to a heartbeat for ever", i)
		}
	}
	if a.state.canSendData() && s.ForwardOutstanding() && !s.ForwardDue() {
		any := false
		for i := range a.paths {
			any = any || t.runningPath(timerT3, i)
		}
		if !any {
			return fmt.Errorf("no T3 for a FORWARD-TSN")
		}
	}
	return nil
}

// checkTracker checks the map of received TSNs.
func checkTracker(a *Assoc) error {
	if a.rx.reasm == nil {
		return nil
	}
	return a.rx.tsns.Verify()
}

// checkReceiveAccounts checks what is held for the user: a_rwnd has to be
// exact, or the window closes for ever or lets the peer fill the memory.
// Pieces that were given out are counted by the caller of PopPiece alone.
func checkReceiveAccounts(a *Assoc) error {
	if a.rx.reasm == nil {
		return nil
	}
	return a.rx.reasm.Verify()
}

// checkQueues checks the bounds of everything else that a peer can make grow.
func checkQueues(a *Assoc) error {
	switch {
	case a.ctl.n > maxControlReplies:
		return fmt.Errorf("%d control replies", a.ctl.n)
	case a.standalone.n > maxReplyPackets:
		return fmt.Errorf("%d packets that stand alone", a.standalone.n)
	case len(a.rc.queue) > maxReconfigs+1:
		return fmt.Errorf("%d requests to reset or add streams", len(a.rc.queue))
	case len(a.asc.queue) > maxAsconfQueue || len(a.asc.ops) > maxAsconfOps:
		return fmt.Errorf("%d and %d changes of addresses", len(a.asc.queue), len(a.asc.ops))
	case len(a.local) > MaxLocalAddrs+maxAsconfQueue:
		return fmt.Errorf("%d local addresses", len(a.local))
	case len(a.events.list)-a.events.head > maxEvents+maxReconfigs+maxAsconfQueue+8:
		return fmt.Errorf("%d events", len(a.events.list)-a.events.head)
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
