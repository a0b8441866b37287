package core

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// handleResponse takes in a Re-configuration Response (RFC 6525, Section
// 5.2.7).
func (a *Assoc) handleResponse(now clock.Time, x wire.ReConfigResponse) {
	r := &a.rc
	q, p := r.find(x.RespSeq)
	if p == nil {
		return // H1: "the processing of the … Parameter is complete"
	}
	a.pathAlive(a.in.path)
	switch x.Result {
	case wire.ReConfigInProgress: // H2
		if q == r.queue[0] {
			r.quiet, r.answered, r.send = true, true, false
			a.timers.set(timerReconf, now+a.paths[r.path].rto.Value())
			if p.kind == wire.ParamTSNReset {
				a.easeIncoming()
				a.catchUp()
			}
			if a.state != Closed {
				a.yieldReconfig(now)
			}
		}
		return
	case wire.ReConfigAlreadyRunning:
		// Both ends asked at the same time and the peer wants its request to be
		// answered first.
		if q.tries++; q.tries <= maxReconfigRetries && q.n == 1 && q == r.queue[0] {
			q.chunk, r.send = q.chunk[:0], false
			rto := a.paths[r.path].rto.Value()
			r.resumeAt = now + rto + max(a.rng.jitter(rto), 0)
			if p.kind == wire.ParamTSNReset {
				r.resetAt = 0
				a.releaseIncoming()
			}
			a.timers.set(timerReconf, r.resumeAt)
			return
		}
		fallthrough
	default:
		q.err = fmt.Errorf("%w: %v", requests.ErrDenied, x.Result)
		if p.kind == wire.ParamTSNReset {
			a.releaseIncoming()
		}
	case wire.ReConfigNothingToDo, wire.ReConfigPerformed:
		if p.kind == wire.ParamTSNReset && !x.HasTSNs {
			q.err = fmt.Errorf("%w: no TSNs", requests.ErrDenied)
			a.releaseIncoming()
			break
		}
		a.performPart(p, &x)
	}
	if a.state != Closed {
		a.partDone(now, q, p)
	}
}

// yieldReconfig puts the outstanding request, which the peer has answered with
// "in progress", behind one that answers the peer's: else two ends that ask
// each other for an outgoing request would wait for each other for ever.
func (a *Assoc) yieldReconfig(now clock.Time) {
	r := &a.rc
	if !r.quiet || len(r.queue) < 2 || !r.queue[1].answers {
		return
	}
	switch q := r.queue[0]; q.parts[q.n-1].kind {
	case wire.ParamIncomingReset, wire.ParamAddIncoming:
	default:
		return
	}
	r.queue[0], r.queue[1] = r.queue[1], r.queue[0]
	r.send = false // it may have been due again, and the other one may have to wait
	a.beginReconfig(now)
}

// performPart does what a successful request means here.
func (a *Assoc) performPart(p *rcPart, x *wire.ReConfigResponse) {
	switch p.kind {
	case wire.ParamOutgoingReset: // H4
		a.tx.q.ResetStreams(p.streams)
	case wire.ParamTSNReset: // H5
		a.rc.late = nil
		if a.restartRx(seq.TSN(x.SenderNextTSN)); a.state == Closed {
			return
		}
		if a.tx.sb.ResetTSN(seq.TSN(x.ReceiverNextTSN)) {
			a.tx.q.ResetStreams(nil)
		}
		a.ecn = ecnState{}
		a.events.push(Event{Kind: EventStreamsReset})
		a.events.push(Event{Kind: EventOutStreamsReset})
	case wire.ParamAddOutgoing: // H6
		a.tx.streams = min(a.tx.streams+int(p.count), maxStreams)
		a.tx.q.SetStreams(a.tx.streams)
		a.events.push(Event{Kind: EventStreamsAdded})
	}
}

// tellReset notifies the user of what became of q, which reset outgoing streams.
func (a *Assoc) tellReset(q *rcRequest) {
	if q.parts[0].kind != wire.ParamOutgoingReset {
		return
	}
	switch done := q.all[:q.from]; {
	case q.err == nil && q.all == nil:
		a.events.push(Event{Kind: EventOutStreamsReset, Streams: q.parts[0].streams})
	case q.err == nil:
		a.events.push(Event{Kind: EventOutStreamsReset, Streams: q.all})
	default:
		if len(done) > 0 {
			a.events.push(Event{Kind: EventOutStreamsReset, Streams: done})
		}
		a.events.push(Event{Kind: EventOutStreamsReset, Streams: q.pending(), Err: q.err})
	}
}

// partDone notes that part p of request q was answered. With the last one the
// timer stops and the next request can begin.
func (a *Assoc) partDone(now clock.Time, q *rcRequest, p *rcPart) {
	r := &a.rc
	p.done = true
	for i := range q.list() {
		if !q.parts[i].done {
			return
		}
	}
	if q == r.queue[0] {
		a.timers.set(timerReconf, 0)
		r.send, r.response = false, nil
	}
	i := slices.Index(r.queue, q)
	if q.more() {
		a.resumePart(q)
		q.advance()
		a.beginReconfig(now)
		return
	}
	r.queue = slices.Delete(r.queue, i, i+1)
	if q.answers {
		r.in.answered(q.respSeq, q.err)
	}
	a.tellReset(q)
	a.resumeStreams(q)
	a.requestDone(q.id, q.err)
	if next := r.outstanding(); i == 0 && next != nil {
		r.send, r.quiet, r.path = true, true, a.dataPath() // it had yielded
	}
	a.beginReconfig(now)
}
