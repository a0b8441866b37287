package core

import (
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// ready reports whether q may be sent now.
func (a *Assoc) reconfigReady(now clock.Time, q *rcRequest) bool {
	p := &q.parts[0]
	switch p.kind {
	case wire.ParamOutgoingReset, wire.ParamTSNReset:
		if a.rc.in.holding {
			return false // the peer's comes first
		}
	}
	switch p.kind {
	case wire.ParamOutgoingReset:
		// Everything sent on the streams must be acknowledged. So no FORWARD-TSN
		// can name a message of before the reset after it.
		if len(p.streams) == 0 {
			return a.allDrained()
		}
		for _, sid := range p.streams {
			if !a.tx.q.Drained(sid) {
				return false
			}
		}
	case wire.ParamTSNReset:
		if wait := a.rc.resetAt + reconfigMSL; a.rc.resetAt != 0 && wait > now {
			a.timers.set(timerReconf, wait)
			return false
		}
		return a.allDrained()
	}
	return true
}

// allDrained reports whether nothing is outstanding and no message begun.
func (a *Assoc) allDrained() bool {
	return a.allSent() && !a.tx.q.Unfinished()
}

// allSent reports whether nothing is outstanding and nothing may be sent.
func (a *Assoc) allSent() bool { return a.tx.sb.Outstanding() == 0 && !a.tx.q.Pending() }

// beginReconfig sends the next request, if none is outstanding: "there MUST NOT
// be more than one request in flight" (RFC 6525, Section 5.1.1).
func (a *Assoc) beginReconfig(now clock.Time) {
	r := &a.rc
	if r.outstanding() != nil || len(r.queue) == 0 || !a.state.canSendData() || now < r.resumeAt ||
		!a.reconfigReady(now, r.queue[0]) {
		return
	}
	q := r.queue[0]
	b := q.chunk
	for i := range q.list() {
		p := &q.parts[i]
		p.seq, p.done = r.nextSeq, false
		r.nextSeq++ // A2, B1, C1
		switch p.kind {
		case wire.ParamOutgoingReset:
			// A4: the number of the request it answers, or else "the next
			// expected Re-configuration Request Sequence Number of the peer minus
			// 1".
			resp := r.in.next - 1
			if q.answers {
				resp = q.respSeq
			}
			// A3: "MUST be set to the next TSN the sender assigns minus 1".
			last := uint32(a.tx.sb.NextTSN() - 1)
			b = wire.AppendOutgoingReset(b, wire.OutgoingReset{ReqSeq: p.seq, RespSeq: resp, LastTSN: last}, p.streams)
		case wire.ParamIncomingReset:
			b = wire.AppendIncomingReset(b, p.seq, p.streams)
		case wire.ParamTSNReset:
			r.resetAt, r.newSpace = now, true
			a.holdIncoming()
			b = wire.AppendTSNReset(b, p.seq)
		case wire.ParamAddOutgoing:
			b = wire.AppendAddOutgoing(b, wire.AddStreams{ReqSeq: p.seq, Streams: p.count})
		case wire.ParamAddIncoming:
			b = wire.AppendAddIncoming(b, wire.AddStreams{ReqSeq: p.seq, Streams: p.count})
		}
	}
	q.chunk = b
	r.send, r.quiet, r.answered, r.hasSeen, r.path = true, false, false, false, a.dataPath()
}

// dropResets ends the SSN/TSN resets that have not begun: the peer shuts down,
// and what is queued behind them is still to be sent.
func (a *Assoc) dropResets() {
	r := &a.rc
	for i := 0; i < len(r.queue); {
		q := r.queue[i]
		if q.parts[0].kind != wire.ParamTSNReset || len(q.chunk) > 0 {
			i++
			continue
		}
		r.queue = slices.Delete(r.queue, i, i+1)
		a.resumeStreams(q)
		a.requestDone(q.id, ErrShutdown)
	}
}

// reconfigPath returns the path that a request is to go to now.
func (a *Assoc) reconfigPath(now clock.Time) (int, bool) {
	r := &a.rc
	if len(r.queue) > 0 && r.outstanding() == nil {
		a.beginReconfig(now)
	}
	if r.send && !a.paths[r.path].confirmed {
		r.path = a.dataPath()
	}
	return r.path, r.send && a.paths[r.path].confirmed
}

// appendReconfig appends the outstanding request, if it is to go to path i.
func (a *Assoc) appendReconfig(b []byte, now clock.Time, i, room int) []byte {
	r := &a.rc
	q := r.outstanding()
	if !r.send || r.path != i || wire.ChunkHeaderLen+len(r.response)+len(q.chunk) > room || !a.paths[i].confirmed {
		return b
	}
	r.send, r.lateAsk = false, len(r.late) > 0
	if r.quiet && !r.hasSeen {
		r.seen, r.hasSeen = a.rx.tsns.Highest(), true
	}
	// RFC 6525, Section 5.1.1: the sender "MUST start the Re-configuration
	// Timer", with "the same value as SCTP's data transmission timer".
	a.timers.set(timerReconf, now+a.paths[i].rto.Value())
	a.paths[i].lastSent = now
	if len(r.response) == 0 {
		return wire.AppendReConfig(b, wire.ReConfig{Params: q.chunk})
	}
	params := append(r.response, q.chunk...)
	r.response = nil
	return wire.AppendReConfig(b, wire.ReConfig{Params: params})
}

// reconfigTimeout sends the outstanding request again: "besides doubling the
// value, the sender MUST retransmit the RE-CONFIG chunk, increment the
// appropriate error counts … and perform threshold management" (RFC 6525,
// Section 5.1.1).
func (a *Assoc) reconfigTimeout(now clock.Time) {
	r := &a.rc
	if r.outstanding() == nil {
		a.beginReconfig(now) // a pause is over
		return
	}
	if !a.state.canSendData() {
		return
	}
	r.response = nil // the peer asks again for what it has not got
	a.stats.Timeouts++
	if a.state == ShutdownReceived && a.senderDry() && a.giveUp(now) {
		return
	}
	// After "in progress" "the corresponding error counters MUST NOT be
	// incremented" (Section 5.2.7, H2): for the transmission that was answered.
	if r.answered {
		r.answered = false
	} else {
		a.paths[r.path].rto.Backoff()
		if !a.pathError(r.path, true) {
			return
		}
		r.path = a.otherPath(r.path)
	}
	if !a.paths[r.path].usable() {
		r.path = a.dataPath()
	}
	r.send = true
}

// giveUp ends the outstanding request, for which alone the peer's shutdown waits,
// if it was repeated often enough: the peer may not answer any more.
func (a *Assoc) giveUp(now clock.Time) bool {
	q := a.rc.queue[0]
	if q.tries < maxLateRequests {
		q.tries++
		return false
	}
	q.err = ErrShutdown
	if a.resettingAssoc() {
		if a.releaseIncoming(); a.state == Closed {
			return true
		}
	}
	for i := range q.list() {
		if p := &q.parts[i]; !p.done {
			a.partDone(now, q, p)
		}
	}
	a.progressShutdown(now)
	return true
}
