package reconfig

import (
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// part is one request parameter of ours.
type part struct {
	kind    wire.ParamType
	seq     uint32
	streams []uint16 // none: all
	count   uint16   // of streams to add
	done    bool     // answered
}

// request is what goes as one RE-CONFIG chunk, or, with more streams to reset
// than one can name, as several, one after the other.
type request struct {
	id      uint32 // the user's; 0 if it answers the peer
	answers bool   // the peer's request respSeq
	respSeq uint32
	parts   [2]part
	n       int
	all     []uint16 // sorted; parts[0] is about some of them. Nil: about all there are
	from    int      // where in all those of parts[0] begin
	fence   uint64   // messages queued from this arrival number on come after a reset
	tries   int
	err     error
	chunk   []byte // the parameters as they are sent; empty: not begun
}

func (q *request) list() []part { return q.parts[:q.n] }

// pauses reports whether q keeps new messages of stream sid from being sent,
// and does not those of all streams.
func (q *request) pauses(sid uint16) bool {
	if q.parts[0].kind != wire.ParamOutgoingReset {
		return false
	}
	_, found := slices.BinarySearch(q.pending(), sid)
	return found
}

// pending returns the streams of q that are not reset yet; none if it names none.
func (q *request) pending() []uint16 {
	if q.all == nil {
		return q.parts[0].streams
	}
	return q.all[q.from:]
}

// take makes parts[0] about the next streams that fit a request.
func (q *request) take() {
	q.parts[0].streams = q.all[q.from:min(q.from+MaxResetStreams, len(q.all))]
}

// more reports whether another request is to follow parts[0], which is done.
func (q *request) more() bool { return q.err == nil && q.from+len(q.parts[0].streams) < len(q.all) }

// advance goes on to the streams behind those of parts[0].
func (q *request) advance() {
	q.from += len(q.parts[0].streams)
	q.tries, q.chunk = 0, q.chunk[:0]
	q.take()
}

// begun reports whether q was given sequence numbers.
func (q *request) begun() bool { return len(q.chunk) > 0 }

// resetsTSNs reports whether q is an SSN/TSN reset.
func (q *request) resetsTSNs() bool { return q.parts[0].kind == wire.ParamTSNReset }

// pausesAll reports whether q keeps all streams from sending.
func (q *request) pausesAll() bool {
	p := &q.parts[0]
	return q.resetsTSNs() || p.kind == wire.ParamOutgoingReset && len(p.streams) == 0
}

// ResetStreams queues request id, to reset outgoing streams, all of them if sids is empty
// (RFC 6525, Section 5.1.2). Messages queued before are still sent under the old numbers;
// later ones wait for the reset.
//
// More streams than fit a packet take several requests to the peer in sequence.
// The first that fails ends it.
func (h *Handler) ResetStreams(now clock.Time, id uint32, sids []uint16) {
	h.reset(now, id, wire.ParamOutgoingReset, sids, h.tx().Streams())
}

// ResetIncoming queues request id, to have the peer reset streams that it sends on, all of
// them if sids is empty (RFC 6525, Section 5.1.3).
func (h *Handler) ResetIncoming(now clock.Time, id uint32, sids []uint16) {
	h.reset(now, id, wire.ParamIncomingReset, sids, h.rx().Streams())
}

// reset queues a request to reset sids, of so many streams that there are.
func (h *Handler) reset(now clock.Time, id uint32, kind wire.ParamType, sids []uint16, streams int) {
	q := &request{id: id, parts: [2]part{{kind: kind}}, n: 1}
	// A4, B2: if all streams are to be reset, "stream numbers SHOULD NOT be put
	// into" the request.
	if all := compactSIDs(sids); len(all) > 0 && len(all) < streams {
		q.all = all
		q.take()
	}
	h.enqueue(now, q)
}

// ResetTSNs queues request id, to restart the numbers of all streams, and the TSNs, in both
// directions (RFC 6525, Section 5.1.4). Everything queued before is sent first.
func (h *Handler) ResetTSNs(now clock.Time, id uint32) {
	h.enqueue(now, &request{id: id, parts: [2]part{{kind: wire.ParamTSNReset}}, n: 1})
}

// AddStreams queues request id, to have the peer accept more outgoing streams and use more
// incoming ones (RFC 6525, Sections 5.1.5 and 5.1.6). One of the two numbers may be 0.
func (h *Handler) AddStreams(now clock.Time, id uint32, out, in uint16) {
	q := &request{id: id}
	if out > 0 {
		q.parts[q.n] = part{kind: wire.ParamAddOutgoing, count: out}
		q.n++
	}
	if in > 0 {
		q.parts[q.n] = part{kind: wire.ParamAddIncoming, count: in}
		q.n++
	}
	h.enqueue(now, q)
}

// enqueue queues the user's request q.
func (h *Handler) enqueue(now clock.Time, q *request) {
	q.fence = h.tx().Arrivals()
	h.queue = append(h.queue, q)
	h.pauseStreams(q)
	h.Begin(now)
}

// compactSIDs returns a sorted copy without duplicates.
func compactSIDs(sids []uint16) []uint16 {
	s := slices.Clone(sids)
	slices.Sort(s)
	return slices.Compact(s)
}
