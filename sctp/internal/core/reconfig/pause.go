package reconfig

import (
	"encoding/binary"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// pauseStreams pauses the streams of q that no earlier request has paused (RFC
// 6525, Section 5.1.2, A1, and 5.1.4, C2).
func (h *Handler) pauseStreams(q *request) {
	switch {
	case q.pausesAll():
		h.tx().PauseAll(q.fence)
	case q.parts[0].kind == wire.ParamOutgoingReset:
		for _, sid := range q.pending() {
			h.tx().Pause(sid, q.fence)
		}
	}
}

// resumePart lets the streams go on that parts[0] of q, which is still in the
// queue, has reset, unless a later request pauses them again.
func (h *Handler) resumePart(q *request) {
	if q.parts[0].kind != wire.ParamOutgoingReset {
		return
	}
	for _, sid := range q.parts[0].streams {
		h.tx().Resume(sid)
		for _, x := range h.queue {
			if x != q && x.pauses(sid) {
				h.tx().Pause(sid, x.fence)
				break
			}
		}
	}
	h.tx().Reschedule()
}

// resumeStreams undoes the pauses of q, which is not in the queue any more; the
// next request that names a stream pauses it again.
func (h *Handler) resumeStreams(q *request) {
	if q.pausesAll() {
		h.tx().ResumeAll()
	} else if q.parts[0].kind == wire.ParamOutgoingReset {
		for _, sid := range q.pending() {
			h.tx().Resume(sid)
		}
	}
	if h.in.holding {
		h.tx().ResumeAll()
		h.tx().PauseAll(0)
	}
	for _, next := range h.queue {
		h.pauseStreams(next)
	}
	h.tx().Reschedule()
}

// holdIncoming holds back the data that comes while our SSN/TSN reset is
// outstanding. When the peer has performed it, it sends under new numbers at
// once, and its data may overtake its response, which tells from where on they
// are new.
func (h *Handler) holdIncoming() { h.rx().DeferReset(nil, h.rx().Highest()) }

// easeIncoming lets the user have what came before the last request was sent
// to which the peer answered "in progress" now: it was sent before the reset.
// That is needed when the peer sends more than we can hold back.
func (h *Handler) easeIncoming() {
	if !h.hasSeen || !h.rx().Pressed() {
		return
	}
	h.hasSeen = false
	h.rx().AdvanceDefer(h.seen)
}

// PutOff keeps a FORWARD-TSN or I-FORWARD-TSN for later that reaches beyond what
// had come when our SSN/TSN reset was sent: it may name messages of after the
// reset, or of before it among those that are held back. It is not acknowledged,
// so the peer repeats it, and does not perform the reset if it is of before it.
func (h *Handler) PutOff(c wire.Chunk, cum seq.TSN) bool {
	if !h.ResettingTSNs() || h.OtherSpace(cum.Sub(h.rx().CumTSN())) || cum.LessEq(h.rx().DeferredUntil()) ||
		cum.LessEq(h.rx().CumTSN()) {
		return false
	}
	if len(h.late) == 0 {
		h.late, h.lateAsk = append(h.late, c.Raw...), false
	}
	h.rx().Refuse()
	return true
}

// catchUp takes in the FORWARD-TSN that was put off. It came before our request
// was sent again, to which the answer is still "in progress": so it is of before
// the reset, as is all data up to its cumulative TSN.
func (h *Handler) catchUp() {
	if len(h.late) == 0 || !h.lateAsk {
		return
	}
	it := wire.NewChunks(h.late)
	h.late = h.late[len(h.late):]
	it.Next()
	c := it.Chunk()
	cum := seq.TSN(binary.BigEndian.Uint32(c.Value)) // both kinds begin with it
	if h.rx().DeferredUntil().Less(cum) && !h.rx().AdvanceDefer(cum) {
		return
	}
	h.assoc.Forward(c)
}

// releaseIncoming undoes holdIncoming.
func (h *Handler) releaseIncoming() {
	h.late = nil
	h.rx().Undefer(h.in.deferred, h.in.streams, h.in.lastTSN)
}
