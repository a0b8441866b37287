package reconfig

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
func (h *Handler) handleResponse(now clock.Time, x wire.ReConfigResponse) {
	q, p := h.find(x.RespSeq)
	if p == nil {
		return // H1: "the processing of the … Parameter is complete"
	}
	h.assoc.Alive(h.from)
	switch x.Result {
	case wire.ReConfigInProgress: // H2
		if q == h.queue[0] {
			h.quiet, h.answered, h.send = true, true, false
			h.assoc.SetTimer(now + h.assoc.RTO(h.path))
			if p.kind == wire.ParamTSNReset {
				h.easeIncoming()
				h.catchUp()
			}
			if !h.assoc.Closed() {
				h.yield(now)
			}
		}
		return
	case wire.ReConfigAlreadyRunning:
		// Both ends asked at the same time and the peer wants its request to be
		// answered first.
		if q.tries++; q.tries <= MaxRetries && q.n == 1 && q == h.queue[0] {
			q.chunk, h.send = q.chunk[:0], false
			rto := h.assoc.RTO(h.path)
			h.resumeAt = now + rto + max(h.assoc.Jitter(rto), 0)
			if p.kind == wire.ParamTSNReset {
				h.resetAt = 0
				h.releaseIncoming()
			}
			h.assoc.SetTimer(h.resumeAt)
			return
		}
		fallthrough
	default:
		q.err = fmt.Errorf("%w: %v", requests.ErrDenied, x.Result)
		if p.kind == wire.ParamTSNReset {
			h.releaseIncoming()
		}
	case wire.ReConfigNothingToDo, wire.ReConfigPerformed:
		if p.kind == wire.ParamTSNReset && !x.HasTSNs {
			q.err = fmt.Errorf("%w: no TSNs", requests.ErrDenied)
			h.releaseIncoming()
			break
		}
		h.performPart(p, &x)
	}
	if !h.assoc.Closed() {
		h.partDone(now, q, p)
	}
}

// yield puts the outstanding request, which the peer has answered with
// "in progress", behind one that answers the peer's: else two ends that ask
// each other for an outgoing request would wait for each other for ever.
func (h *Handler) yield(now clock.Time) {
	if !h.quiet || len(h.queue) < 2 || !h.queue[1].answers {
		return
	}
	switch q := h.queue[0]; q.parts[q.n-1].kind {
	case wire.ParamIncomingReset, wire.ParamAddIncoming:
	default:
		return
	}
	h.queue[0], h.queue[1] = h.queue[1], h.queue[0]
	h.send = false // it may have been due again, and the other one may have to wait
	h.Begin(now)
}

// performPart does what a successful request means here.
func (h *Handler) performPart(p *part, x *wire.ReConfigResponse) {
	switch p.kind {
	case wire.ParamOutgoingReset: // H4
		h.tx().ResetStreams(p.streams)
	case wire.ParamTSNReset: // H5
		h.late = nil
		if h.restartRx(seq.TSN(x.SenderNextTSN)); h.assoc.Closed() {
			return
		}
		if h.tx().ResetTSN(seq.TSN(x.ReceiverNextTSN)) {
			h.tx().ResetStreams(nil)
		}
		h.assoc.TSNsReset()
		h.assoc.InReset(nil)
		h.assoc.OutReset(nil, nil)
	case wire.ParamAddOutgoing: // H6
		h.tx().SetStreams(min(h.tx().Streams()+int(p.count), MaxStreams))
		h.assoc.Added()
	}
}

// tellReset notifies the user of what became of q, which reset outgoing streams.
func (h *Handler) tellReset(q *request) {
	if q.parts[0].kind != wire.ParamOutgoingReset {
		return
	}
	switch done := q.all[:q.from]; {
	case q.err == nil && q.all == nil:
		h.assoc.OutReset(q.parts[0].streams, nil)
	case q.err == nil:
		h.assoc.OutReset(q.all, nil)
	default:
		if len(done) > 0 {
			h.assoc.OutReset(done, nil)
		}
		h.assoc.OutReset(q.pending(), q.err)
	}
}

// partDone notes that part p of request q was answered. With the last one the
// timer stops and the next request can begin.
func (h *Handler) partDone(now clock.Time, q *request, p *part) {
	p.done = true
	for i := range q.list() {
		if !q.parts[i].done {
			return
		}
	}
	if q == h.queue[0] {
		h.assoc.SetTimer(0)
		h.send, h.response = false, nil
	}
	i := slices.Index(h.queue, q)
	if q.more() {
		h.resumePart(q)
		q.advance()
		h.Begin(now)
		return
	}
	h.queue = slices.Delete(h.queue, i, i+1)
	if q.answers {
		h.in.answered(q.respSeq, q.err)
	}
	h.tellReset(q)
	h.resumeStreams(q)
	h.assoc.Done(q.id, q.err)
	if next := h.outstanding(); i == 0 && next != nil {
		h.send, h.quiet, h.path = true, true, h.assoc.DataPath() // it had yielded
	}
	h.Begin(now)
}
