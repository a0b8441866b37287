package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

const (
	// maxReconfigs bounds the RE-CONFIG requests that wait or are outstanding,
	// those included that answer the peer's.
	maxReconfigs = 16
	// MaxResetStreams is how many streams one reset request can name: it fits
	// the smallest packet, an AUTH chunk besides.
	MaxResetStreams = 200
	// maxReconfigRetries is how often a request is repeated that the peer had
	// no time for ("request already in progress").
	maxReconfigRetries = 8
	// reconfigMSL is how long after an SSN/TSN reset the next one waits: RFC
	// 6525, Section 5.1.4: "Only one SSN/TSN Reset Request SHOULD be sent
	// within 30 seconds".
	reconfigMSL = Time(30 * time.Second)
	// maxStreams is the largest number of streams in a direction.
	maxStreams = 1<<16 - 1
)

// Reconfigs is a set of re-configurations that a peer may ask for.
type Reconfigs uint8

// Kinds of requests.
const (
	ReconfigStreams Reconfigs = 1 << iota // reset the SSNs of streams
	ReconfigAssoc                         // reset SSNs and TSNs
	ReconfigAdd                           // add streams
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

// reconfig is the re-configuration of streams (RFC 6525): our requests, one of
// which is outstanding at a time, and the answers to the peer's.
type reconfig struct {
	nextSeq  uint32       // of our next request
	queue    []*rcRequest // in order; the first is outstanding if chunk is not empty
	chunk    []byte       // the parameters of the outstanding one
	send     bool         // chunk is to be sent
	quiet    bool         // "in progress": no answer is no error (Section 5.2.7, H2)
	path     int          // where chunk went last
	resetAt  Time         // of our last SSN/TSN reset
	resumeAt Time         // nothing begins before
	newSpace bool         // TSNs have been reset: stragglers have others

	in rcReceiver
}

// openReconfig begins anew: the association was established or restarted. RFC
// 6525, Section 4.1: request sequence numbers begin with the initial TSN.
func (a *Assoc) openReconfig(peerTSN TSN) {
	a.failReconfigs(ErrRestart)
	a.rc = reconfig{nextSeq: uint32(a.tsn), in: rcReceiver{next: uint32(peerTSN)}}
}

// failReconfigs ends all requests.
func (a *Assoc) failReconfigs(err error) {
	for _, q := range a.rc.queue {
		a.requestDone(q.id, err)
	}
	a.rc.queue, a.rc.chunk, a.rc.send = nil, nil, false
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

// pauseStreams pauses the streams of q that no earlier request has paused (RFC
// 6525, Section 5.1.2, A1, and 5.1.4, C2).
func (a *Assoc) pauseStreams(q *rcRequest) {
	sq := a.tx.q
	switch {
	case q.pausesAll():
		if !sq.held {
			sq.hold(q.fence)
		}
	case q.parts[0].kind == wire.ParamOutgoingReset:
		for _, sid := range q.parts[0].streams {
			if !sq.stream(sid).paused {
				sq.fence(sid, q.fence)
			}
		}
	}
}

// resumeStreams undoes the pauses of q, which is not in the queue any more; the
// next request that names a stream pauses it again.
func (a *Assoc) resumeStreams(q *rcRequest) {
	sq := a.tx.q
	if q.pausesAll() {
		sq.held = false
	} else if q.parts[0].kind == wire.ParamOutgoingReset {
		for _, sid := range q.parts[0].streams {
			sq.stream(sid).paused = false
		}
	}
	if a.rc.in.holding {
		sq.held, sq.holdFence = true, 0
	}
	for _, next := range a.rc.queue {
		a.pauseStreams(next)
	}
	sq.rescheduleAll()
}

// ready reports whether q may be sent now.
func (a *Assoc) reconfigReady(now Time, q *rcRequest) bool {
	p := &q.parts[0]
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
	return a.tx.sb.Outstanding() == 0 && !a.tx.q.Pending()
}

// beginReconfig sends the next request, if none is outstanding: "there MUST NOT
// be more than one request in flight" (RFC 6525, Section 5.1.1).
func (a *Assoc) beginReconfig(now Time) {
	r := &a.rc
	if len(r.chunk) > 0 || len(r.queue) == 0 || !a.state.canSendData() || now < r.resumeAt ||
		!a.reconfigReady(now, r.queue[0]) {
		return
	}
	q := r.queue[0]
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
			r.chunk = wire.AppendOutgoingReset(r.chunk, wire.OutgoingReset{ReqSeq: p.seq, RespSeq: resp, LastTSN: last}, p.streams)
		case wire.ParamIncomingReset:
			r.chunk = wire.AppendIncomingReset(r.chunk, p.seq, p.streams)
		case wire.ParamTSNReset:
			r.resetAt, r.newSpace = now, true
			r.chunk = wire.AppendTSNReset(r.chunk, p.seq)
		case wire.ParamAddOutgoing:
			r.chunk = wire.AppendAddOutgoing(r.chunk, wire.AddStreams{ReqSeq: p.seq, Streams: p.count})
		case wire.ParamAddIncoming:
			r.chunk = wire.AppendAddIncoming(r.chunk, wire.AddStreams{ReqSeq: p.seq, Streams: p.count})
		}
	}
	r.send, r.quiet, r.path = true, false, a.dataPath()
}

// reconfigPath returns the path that a request is to go to now.
func (a *Assoc) reconfigPath(now Time) (int, bool) {
	r := &a.rc
	if len(r.queue) > 0 && len(r.chunk) == 0 {
		a.beginReconfig(now)
	}
	if !r.send || !a.paths[r.path].confirmed {
		return 0, false
	}
	return r.path, true
}

// appendReconfig appends the outstanding request, if it is to go to path i.
func (a *Assoc) appendReconfig(b []byte, now Time, i, room int) []byte {
	r := &a.rc
	if !r.send || r.path != i || wire.ChunkHeaderLen+len(r.chunk) > room || !a.paths[i].confirmed {
		return b
	}
	r.send = false
	// RFC 6525, Section 5.1.1: the sender "MUST start the Re-configuration
	// Timer", with "the same value as SCTP's data transmission timer".
	a.timers.set(timerReconf, now+a.paths[i].rto.Value())
	a.paths[i].lastSent = now
	return wire.AppendReConfig(b, wire.ReConfig{Params: r.chunk})
}

// reconfigTimeout sends the outstanding request again: "besides doubling the
// value, the sender MUST retransmit the RE-CONFIG chunk, increment the
// appropriate error counts … and perform threshold management" (RFC 6525,
// Section 5.1.1). After "in progress" it does not count them (5.2.7, H2).
func (a *Assoc) reconfigTimeout(now Time) {
	r := &a.rc
	if len(r.chunk) == 0 {
		a.beginReconfig(now) // a pause is over
		return
	}
	if !a.state.canSendData() {
		return
	}
	a.stats.Timeouts++
	if !r.quiet {
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

// handleResponse takes in a Re-configuration Response (RFC 6525, Section
// 5.2.7).
func (a *Assoc) handleResponse(now Time, x wire.ReConfigResponse) {
	p := a.outstandingPart(x.RespSeq)
	if p == nil {
		return // H1: "the processing of the … Parameter is complete"
	}
	r := &a.rc
	q := r.queue[0]
	a.pathAlive(a.in.path)
	switch x.Result {
	case wire.ReConfigInProgress: // H2
		r.quiet, r.send = true, false
		a.timers.set(timerReconf, now+a.paths[r.path].rto.Value())
		return
	case wire.ReConfigAlreadyRunning:
		// Both ends asked at the same time and the peer wants its request to be
		// answered first.
		if q.tries++; q.tries <= maxReconfigRetries && q.n == 1 {
			r.chunk, r.send = r.chunk[:0], false
			rto := a.paths[r.path].rto.Value()
			r.resumeAt = now + rto + max(a.rng.jitter(rto), 0)
			if p.kind == wire.ParamTSNReset {
				r.resetAt = 0
			}
			a.timers.set(timerReconf, r.resumeAt)
			return
		}
		fallthrough
	default:
		q.err = fmt.Errorf("%w: %v", ErrDenied, x.Result)
	case wire.ReConfigNothingToDo, wire.ReConfigPerformed:
		if p.kind == wire.ParamTSNReset && !x.HasTSNs {
			q.err = fmt.Errorf("%w: no TSNs", ErrDenied)
			break
		}
		a.performPart(p, &x)
	}
	if a.state != Closed {
		a.partDone(now, p)
	}
}

// outstandingPart returns the part of the outstanding request with a sequence
// number that is not answered yet, or nil.
func (a *Assoc) outstandingPart(seq uint32) *rcPart {
	if len(a.rc.chunk) == 0 {
		return nil
	}
	q := a.rc.queue[0]
	for i := range q.list() {
		if p := &q.parts[i]; p.seq == seq && !p.done {
			return p
		}
	}
	return nil
}

// performPart does what a successful request means here.
func (a *Assoc) performPart(p *rcPart, x *wire.ReConfigResponse) {
	switch p.kind {
	case wire.ParamOutgoingReset: // H4
		a.resetOut(p.streams)
	case wire.ParamTSNReset: // H5
		a.restartRx(TSN(x.SenderNextTSN))
		if a.tx.sb.ResetTSN(TSN(x.ReceiverNextTSN)) {
			a.tx.q.ResetAllStreams()
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

// resetOut restarts the numbers of outgoing streams, all if sids is empty.
func (a *Assoc) resetOut(sids []uint16) {
	if len(sids) == 0 {
		a.tx.q.ResetAllStreams()
	}
	for _, sid := range sids {
		a.tx.q.ResetStream(sid)
	}
	a.events.push(Event{Kind: EventOutStreamsReset, Streams: sids})
}

// partDone notes that a part of the outstanding request was answered. With the
// last one the timer stops and the next request can begin.
func (a *Assoc) partDone(now Time, p *rcPart) {
	r := &a.rc
	p.done = true
	q := r.queue[0]
	for i := range q.list() {
		if !q.parts[i].done {
			return
		}
	}
	a.timers.set(timerReconf, 0)
	r.chunk, r.send = r.chunk[:0], false
	r.queue = slices.Delete(r.queue, 0, 1)
	if q.answers {
		r.in.answered(q.respSeq, q.err)
	}
	if q.err != nil && q.parts[0].kind == wire.ParamOutgoingReset {
		a.events.push(Event{Kind: EventOutStreamsReset, Streams: q.parts[0].streams, Err: q.err})
	}
	a.resumeStreams(q)
	a.requestDone(q.id, q.err)
	a.beginReconfig(now)
}
