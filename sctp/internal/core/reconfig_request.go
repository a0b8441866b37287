package core

import (
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// rcPart is one request parameter of ours.
type rcPart struct {
	kind    wire.ParamType
	seq     uint32
	streams []uint16 // none: all
	count   uint16   // of streams to add
	done    bool     // answered
}

// rcRequest is what goes as one RE-CONFIG chunk, or, with more streams to reset
// than one can name, as several, one after the other.
type rcRequest struct {
	id      uint32 // the user's; 0 if it answers the peer
	answers bool   // the peer's request respSeq
	respSeq uint32
	parts   [2]rcPart
	n       int
	all     []uint16 // sorted; parts[0] is about some of them. Nil: about all there are
	from    int      // where in all those of parts[0] begin
	fence   uint64   // messages queued from this arrival number on come after a reset
	tries   int
	err     error
	chunk   []byte // the parameters as they are sent; empty: not begun
}

func (q *rcRequest) list() []rcPart { return q.parts[:q.n] }

// pauses reports whether q keeps new messages of stream sid from being sent,
// and does not those of all streams.
func (q *rcRequest) pauses(sid uint16) bool {
	if q.parts[0].kind != wire.ParamOutgoingReset {
		return false
	}
	_, found := slices.BinarySearch(q.pending(), sid)
	return found
}

// pending returns the streams of q that are not reset yet; none if it names none.
func (q *rcRequest) pending() []uint16 {
	if q.all == nil {
		return q.parts[0].streams
	}
	return q.all[q.from:]
}

// take makes parts[0] about the next streams that fit a request.
func (q *rcRequest) take() {
	q.parts[0].streams = q.all[q.from:min(q.from+maxResetStreams, len(q.all))]
}

// more reports whether another request is to follow parts[0], which is done.
func (q *rcRequest) more() bool { return q.err == nil && q.from+len(q.parts[0].streams) < len(q.all) }

// advance goes on to the streams behind those of parts[0].
func (q *rcRequest) advance() {
	q.from += len(q.parts[0].streams)
	q.tries, q.chunk = 0, q.chunk[:0]
	q.take()
}

// pausesAll reports whether q keeps all streams from sending.
func (q *rcRequest) pausesAll() bool {
	p := &q.parts[0]
	return p.kind == wire.ParamTSNReset || p.kind == wire.ParamOutgoingReset && len(p.streams) == 0
}

// checkReconfig returns why the user cannot ask for a re-configuration.
func (a *Assoc) checkReconfig() error {
	switch {
	case a.state == Closed:
		return ErrClosed
	case a.state > Established:
		return ErrShutdown
	case a.state != Established || !a.peer.features.has(featReconfig):
		return requests.ErrNotSupported
	case len(a.rc.queue) >= maxReconfigs:
		return requests.ErrBusy
	}
	return nil
}

// ResetStreams restarts the sequence numbers of outgoing streams at 0, all of
// them if sids is empty (RFC 6525, Section 5.1.2). Messages queued before are
// still sent under the old numbers; later ones wait for the reset. The result
// names the request in the EventRequestDone that tells the outcome.
//
// More streams than fit a packet take several requests to the peer in sequence.
// The first that fails ends it: an EventOutStreamsReset tells which streams were
// reset by then, and another which were not.
func (a *Assoc) ResetStreams(now clock.Time, sids []uint16) (uint32, error) {
	return a.reset(now, wire.ParamOutgoingReset, sids, a.tx.streams)
}

// ResetIncoming asks the peer to reset streams that it sends on, all of them if
// sids is empty (RFC 6525, Section 5.1.3).
func (a *Assoc) ResetIncoming(now clock.Time, sids []uint16) (uint32, error) {
	return a.reset(now, wire.ParamIncomingReset, sids, a.rx.streams)
}

// reset queues a request to reset sids, of so many streams that there are.
func (a *Assoc) reset(now clock.Time, kind wire.ParamType, sids []uint16, streams int) (uint32, error) {
	if err := a.checkReconfig(); err != nil {
		return 0, err
	}
	for _, sid := range sids {
		if int(sid) >= streams {
			return 0, ErrStream
		}
	}
	q := &rcRequest{parts: [2]rcPart{{kind: kind}}, n: 1}
	// A4, B2: if all streams are to be reset, "stream numbers SHOULD NOT be put
	// into" the request.
	if all := compactSIDs(sids); len(all) > 0 && len(all) < streams {
		q.all = all
		q.take()
	}
	return a.request(now, q), nil
}

// compactSIDs returns a sorted copy without duplicates.
func compactSIDs(sids []uint16) []uint16 {
	s := slices.Clone(sids)
	slices.Sort(s)
	return slices.Compact(s)
}

// ResetAssoc restarts the sequence numbers of all streams, and the TSNs, in both
// directions (RFC 6525, Section 5.1.4). Everything queued before is sent first.
func (a *Assoc) ResetAssoc(now clock.Time) (uint32, error) {
	if err := a.checkReconfig(); err != nil {
		return 0, err
	}
	return a.request(now, &rcRequest{parts: [2]rcPart{{kind: wire.ParamTSNReset}}, n: 1}), nil
}

// AddStreams asks the peer to accept more outgoing streams and to use more
// incoming ones (RFC 6525, Sections 5.1.5 and 5.1.6). The new streams can be
// used once the request is done.
func (a *Assoc) AddStreams(now clock.Time, out, in uint16) (uint32, error) {
	if err := a.checkReconfig(); err != nil {
		return 0, err
	}
	if a.tx.streams+int(out) > maxStreams || a.rx.streams+int(in) > int(a.cfg.InStreams) {
		return 0, requests.ErrTooMany
	}
	q := &rcRequest{}
	if out > 0 {
		q.parts[q.n] = rcPart{kind: wire.ParamAddOutgoing, count: out}
		q.n++
	}
	if in > 0 {
		q.parts[q.n] = rcPart{kind: wire.ParamAddIncoming, count: in}
		q.n++
	}
	if q.n == 0 {
		return 0, ErrParams
	}
	return a.request(now, q), nil
}

// request queues the user's request q.
func (a *Assoc) request(now clock.Time, q *rcRequest) uint32 {
	q.id = a.reqs.Next()
	q.fence = a.tx.q.Arrivals()
	a.rc.queue = append(a.rc.queue, q)
	a.slow |= slowReconfig
	a.pauseStreams(q)
	a.beginReconfig(now)
	return q.id
}
