package core

import (
	"slices"

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

// rcRequest is what goes as one RE-CONFIG chunk.
type rcRequest struct {
	id      uint32 // the user's; 0 if it answers the peer
	answers bool   // the peer's request respSeq
	respSeq uint32
	parts   [2]rcPart
	n       int
	fence   uint64 // messages queued from this arrival number on come after a reset
	tries   int
	err     error
	chunk   []byte // the parameters as they are sent; empty: not begun
}

func (q *rcRequest) list() []rcPart { return q.parts[:q.n] }

// pauses reports whether q keeps new messages of stream sid from being sent.
func (q *rcRequest) pauses(sid uint16) bool {
	p := &q.parts[0]
	return p.kind == wire.ParamOutgoingReset && len(p.streams) > 0 && slices.Contains(p.streams, sid)
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
		return ErrNotSupported
	case len(a.rc.queue) >= maxReconfigs:
		return ErrBusy
	}
	return nil
}

// ResetStreams restarts the sequence numbers of outgoing streams at 0, all of
// them if sids is empty (RFC 6525, Section 5.1.2). Messages queued before are
// still sent under the old numbers; later ones wait for the reset. The result
// names the request in the EventRequestDone that tells the outcome.
func (a *Assoc) ResetStreams(now Time, sids []uint16) (uint32, error) {
	if err := a.checkReset(sids, a.tx.streams); err != nil {
		return 0, err
	}
	q := &rcRequest{parts: [2]rcPart{{kind: wire.ParamOutgoingReset, streams: compactSIDs(sids)}}, n: 1}
	return a.request(now, q), nil
}

// ResetIncoming asks the peer to reset streams that it sends on, all of them if
// sids is empty (RFC 6525, Section 5.1.3).
func (a *Assoc) ResetIncoming(now Time, sids []uint16) (uint32, error) {
	if err := a.checkReset(sids, a.rx.streams); err != nil {
		return 0, err
	}
	q := &rcRequest{parts: [2]rcPart{{kind: wire.ParamIncomingReset, streams: compactSIDs(sids)}}, n: 1}
	return a.request(now, q), nil
}

func (a *Assoc) checkReset(sids []uint16, streams int) error {
	if err := a.checkReconfig(); err != nil {
		return err
	}
	if len(sids) > MaxResetStreams {
		return ErrTooMany
	}
	for _, sid := range sids {
		if int(sid) >= streams {
			return ErrStream
		}
	}
	return nil
}

// compactSIDs returns a sorted copy without duplicates.
func compactSIDs(sids []uint16) []uint16 {
	s := slices.Clone(sids)
	slices.Sort(s)
	return slices.Compact(s)
}

// ResetAssoc restarts the sequence numbers of all streams, and the TSNs, in both
// directions (RFC 6525, Section 5.1.4). Everything queued before is sent first.
func (a *Assoc) ResetAssoc(now Time) (uint32, error) {
	if err := a.checkReconfig(); err != nil {
		return 0, err
	}
	return a.request(now, &rcRequest{parts: [2]rcPart{{kind: wire.ParamTSNReset}}, n: 1}), nil
}

// AddStreams asks the peer to accept more outgoing streams and to use more
// incoming ones (RFC 6525, Sections 5.1.5 and 5.1.6). The new streams can be
// used once the request is done.
func (a *Assoc) AddStreams(now Time, out, in uint16) (uint32, error) {
	if err := a.checkReconfig(); err != nil {
		return 0, err
	}
	if a.tx.streams+int(out) > maxStreams || a.rx.streams+int(in) > int(a.cfg.InStreams) {
		return 0, ErrTooMany
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
func (a *Assoc) request(now Time, q *rcRequest) uint32 {
	q.id = a.reqs.next()
	q.fence = a.tx.q.arrivals
	a.rc.queue = append(a.rc.queue, q)
	a.pauseStreams(q)
	a.beginReconfig(now)
	return q.id
}
