package core

import (
	"encoding/binary"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// pauseStreams pauses the streams of q that no earlier request has paused (RFC
// 6525, Section 5.1.2, A1, and 5.1.4, C2).
func (a *Assoc) pauseStreams(q *rcRequest) {
	sq := a.tx.q
	switch {
	case q.pausesAll():
		sq.PauseAll(q.fence)
	case q.parts[0].kind == wire.ParamOutgoingReset:
		for _, sid := range q.pending() {
			sq.Pause(sid, q.fence)
		}
	}
}

// resumePart lets the streams go on that parts[0] of q, which is still in the
// queue, has reset, unless a later request pauses them again.
func (a *Assoc) resumePart(q *rcRequest) {
	if q.parts[0].kind != wire.ParamOutgoingReset {
		return
	}
	sq, list := a.tx.q, q.parts[0].streams
	for _, sid := range list {
		sq.Resume(sid)
		for _, x := range a.rc.queue {
			if x != q && x.pauses(sid) {
				sq.Pause(sid, x.fence)
				break
			}
		}
	}
	sq.Reschedule()
}

// resumeStreams undoes the pauses of q, which is not in the queue any more; the
// next request that names a stream pauses it again.
func (a *Assoc) resumeStreams(q *rcRequest) {
	sq := a.tx.q
	if q.pausesAll() {
		sq.ResumeAll()
	} else if q.parts[0].kind == wire.ParamOutgoingReset {
		for _, sid := range q.pending() {
			sq.Resume(sid)
		}
	}
	if a.rc.in.holding {
		sq.ResumeAll()
		sq.PauseAll(0)
	}
	for _, next := range a.rc.queue {
		a.pauseStreams(next)
	}
	sq.Reschedule()
}

// holdIncoming holds back the data that comes while our SSN/TSN reset is
// outstanding. When the peer has performed it, it sends under new numbers at
// once, and its data may overtake its response, which tells from where on they
// are new.
func (a *Assoc) holdIncoming() { a.rx.reasm.DeferReset(nil, a.rx.tsns.Highest()) }

// easeIncoming lets the user have what came before the last request was sent
// to which the peer answered "in progress" now: it was sent before the reset.
// That is needed when the peer sends more than we can hold back.
func (a *Assoc) easeIncoming() {
	r := &a.rc
	if !r.hasSeen || !a.rx.reasm.Pressed() {
		return
	}
	r.hasSeen = false
	if res := a.rx.reasm.AdvanceDefer(r.seen); res.Violation() {
		a.violate(res.String())
	}
}

// putOff keeps a FORWARD-TSN or I-FORWARD-TSN for later that reaches beyond what
// had come when our SSN/TSN reset was sent: it may name messages of after the
// reset, or of before it among those that are held back. It is not acknowledged,
// so the peer repeats it, and does not perform the reset if it is of before it.
func (a *Assoc) putOff(c wire.Chunk, cum seq.TSN) bool {
	r := &a.rc
	if !a.resettingAssoc() || a.otherSpace(cum.Sub(a.rx.tsns.CumTSN())) || cum.LessEq(a.rx.reasm.DeferredUntil()) ||
		cum.LessEq(a.rx.tsns.CumTSN()) {
		return false
	}
	if len(r.late) == 0 {
		r.late, r.lateAsk = append(r.late, c.Raw...), false
	}
	a.rx.sack.Refused()
	return true
}

// catchUp takes in the FORWARD-TSN that was put off. It came before our request
// was sent again, to which the answer is still "in progress": so it is of before
// the reset, as is all data up to its cumulative TSN.
func (a *Assoc) catchUp() {
	r := &a.rc
	if len(r.late) == 0 || !r.lateAsk {
		return
	}
	it := wire.NewChunks(r.late)
	r.late = r.late[len(r.late):]
	it.Next()
	c := it.Chunk()
	cum := seq.TSN(binary.BigEndian.Uint32(c.Value)) // both kinds begin with it
	if a.rx.reasm.DeferredUntil().Less(cum) {
		if res := a.rx.reasm.AdvanceDefer(cum); res.Violation() {
			a.violate(res.String())
			return
		}
	}
	if c.Type == wire.ChunkIForwardTSN {
		a.handleIForwardTSN(c)
	} else {
		a.handleForwardTSN(c)
	}
}

// releaseIncoming undoes holdIncoming.
func (a *Assoc) releaseIncoming() {
	in := &a.rc.in
	a.rc.late = nil
	if res := a.rx.reasm.Undefer(in.deferred, in.streams, in.lastTSN); res.Violation() {
		a.violate(res.String())
	}
}
