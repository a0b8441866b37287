package reconfig

import (
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// ready reports whether q may be sent now.
func (h *Handler) ready(now clock.Time, q *request) bool {
	p := &q.parts[0]
	switch p.kind {
	case wire.ParamOutgoingReset, wire.ParamTSNReset:
		if h.in.holding {
			return false // the peer's comes first
		}
	}
	switch p.kind {
	case wire.ParamOutgoingReset:
		// Everything sent on the streams must be acknowledged. So no FORWARD-TSN
		// can name a message of before the reset after it.
		if len(p.streams) == 0 {
			return h.tx().Idle()
		}
		for _, sid := range p.streams {
			if !h.tx().Drained(sid) {
				return false
			}
		}
	case wire.ParamTSNReset:
		if wait := h.resetAt + MSL; h.resetAt != 0 && wait > now {
			h.assoc.SetTimer(wait)
			return false
		}
		return h.tx().Idle()
	}
	return true
}

// Begin sends the next request, if none is outstanding: "there MUST NOT
// be more than one request in flight" (RFC 6525, Section 5.1.1).
func (h *Handler) Begin(now clock.Time) {
	if h.outstanding() != nil || len(h.queue) == 0 || !h.assoc.CanSend() || now < h.resumeAt ||
		!h.ready(now, h.queue[0]) {
		return
	}
	q := h.queue[0]
	b := q.chunk
	for i := range q.list() {
		p := &q.parts[i]
		p.seq, p.done = h.nextSeq, false
		h.nextSeq++ // A2, B1, C1
		switch p.kind {
		case wire.ParamOutgoingReset:
			// A4: the number of the request it answers, or else "the next
			// expected Re-configuration Request Sequence Number of the peer minus
			// 1".
			resp := h.in.next - 1
			if q.answers {
				resp = q.respSeq
			}
			// A3: "MUST be set to the next TSN the sender assigns minus 1".
			last := uint32(h.tx().NextTSN() - 1)
			b = wire.AppendOutgoingReset(b, wire.OutgoingReset{ReqSeq: p.seq, RespSeq: resp, LastTSN: last}, p.streams)
		case wire.ParamIncomingReset:
			b = wire.AppendIncomingReset(b, p.seq, p.streams)
		case wire.ParamTSNReset:
			h.resetAt, h.newSpace = now, true
			h.holdIncoming()
			b = wire.AppendTSNReset(b, p.seq)
		case wire.ParamAddOutgoing:
			b = wire.AppendAddOutgoing(b, wire.AddStreams{ReqSeq: p.seq, Streams: p.count})
		case wire.ParamAddIncoming:
			b = wire.AppendAddIncoming(b, wire.AddStreams{ReqSeq: p.seq, Streams: p.count})
		}
	}
	q.chunk = b
	h.send, h.quiet, h.answered, h.hasSeen, h.path = true, false, false, false, h.assoc.DataPath()
}

// DropResets ends with err the SSN/TSN resets that have not begun: the peer shuts down,
// and what is queued behind them is still to be sent.
func (h *Handler) DropResets(err error) {
	for i := 0; i < len(h.queue); {
		q := h.queue[i]
		if !q.resetsTSNs() || q.begun() {
			i++
			continue
		}
		h.queue = slices.Delete(h.queue, i, i+1)
		h.resumeStreams(q)
		h.assoc.Done(q.id, err)
	}
}

// Path returns the path that the outstanding request goes to, and SetPath changes it.
func (h *Handler) Path() int { return h.path }

// SetPath has the outstanding request go to a path.
func (h *Handler) SetPath(path int) { h.path = path }

// MovePath has go to another path what would go to path i, which is no more.
func (h *Handler) MovePath(i, to int) {
	for _, at := range []*int{&h.path, &h.in.path} {
		if *at == i {
			*at = to
		}
	}
}

// Size returns the length of the chunk that Append appends.
func (h *Handler) Size() int { return wire.ChunkHeaderLen + len(h.response) + len(h.queue[0].chunk) }

// Append appends the outstanding request, which is due, to a packet. The caller starts the
// re-configuration timer: RFC 6525, Section 5.1.1, the sender "MUST start the
// Re-configuration Timer", with "the same value as SCTP's data transmission timer".
func (h *Handler) Append(b []byte) []byte {
	h.send, h.lateAsk = false, len(h.late) > 0
	if h.quiet && !h.hasSeen {
		h.seen, h.hasSeen = h.rx().Highest(), true
	}
	q := h.queue[0]
	if len(h.response) == 0 {
		return wire.AppendReConfig(b, wire.ReConfig{Params: q.chunk})
	}
	params := append(h.response, q.chunk...)
	h.response = nil
	return wire.AppendReConfig(b, wire.ReConfig{Params: params})
}

// Repeat has the outstanding request sent again, to a path.
func (h *Handler) Repeat(path int) {
	h.response = nil // the peer asks again for what it has not got
	h.send, h.path = true, path
}

// TakeAnswered reports, once, whether the peer answered the last transmission of the
// outstanding request with "in progress": the expiry of the timer is no error then.
func (h *Handler) TakeAnswered() bool {
	was := h.answered
	h.answered = false
	return was
}

// GiveUp ends the outstanding request with err if it was repeated often enough while the
// peer's shutdown waits for nothing else: the peer may not answer any more. It reports
// whether it did.
func (h *Handler) GiveUp(now clock.Time, err error) bool {
	q := h.queue[0]
	if q.tries < maxLateRequests {
		q.tries++
		return false
	}
	q.err = err
	if h.ResettingTSNs() {
		if h.releaseIncoming(); h.assoc.Closed() {
			return true
		}
	}
	for i := range q.list() {
		if p := &q.parts[i]; !p.done {
			h.partDone(now, q, p)
		}
	}
	return true
}
