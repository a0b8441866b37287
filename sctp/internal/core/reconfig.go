package core

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

const (
	// maxReconfigs bounds the RE-CONFIG requests of the user that wait or are
	// outstanding. One more may be there to answer the peer's.
	maxReconfigs = 16
	// MaxResetStreams is how many streams one reset request can name: it fits
	// the smallest packet, an AUTH chunk besides.
	MaxResetStreams = 200
	// maxReconfigRetries is how often a request is repeated that the peer had
	// no time for ("request already in progress").
	maxReconfigRetries = 8
	// maxLateRequests is how often a request is repeated while the peer's shutdown
	// waits for nothing else.
	maxLateRequests = 6
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

// reconfig is the re-configuration of streams (RFC 6525): our requests, one of
// which is outstanding at a time, and the answers to the peer's.
type reconfig struct {
	nextSeq  uint32       // of our next request
	queue    []*rcRequest // in order; if the first has begun it is outstanding
	send     bool         // the outstanding one is to be sent
	quiet    bool         // "in progress" was the last answer
	answered bool         // and came since the last transmission
	path     int          // where it went last
	resetAt  Time         // of our last SSN/TSN reset
	resumeAt Time         // nothing begins before
	newSpace bool         // TSNs have been reset: stragglers have others
	seen     TSN          // the highest that had come when the request was sent
	hasSeen  bool         // after we were told "in progress"
	late     []byte       // a FORWARD-TSN that was put off
	lateAsk  bool         // the request was sent again since it came

	in rcReceiver
}

// outstanding returns the request in flight, or nil.
func (r *reconfig) outstanding() *rcRequest {
	if len(r.queue) == 0 || len(r.queue[0].chunk) == 0 {
		return nil
	}
	return r.queue[0]
}

// find returns the request that has begun, and its part, with a sequence number
// that is not answered yet; nil if there is none.
func (r *reconfig) find(seq uint32) (*rcRequest, *rcPart) {
	for _, q := range r.queue {
		for i := range q.list() {
			if p := &q.parts[i]; len(q.chunk) > 0 && p.seq == seq && !p.done {
				return q, p
			}
		}
	}
	return nil, nil
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
	a.rc.queue, a.rc.send = nil, false
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
	return a.tx.sb.Outstanding() == 0 && !a.tx.q.Pending()
}

// beginReconfig sends the next request, if none is outstanding: "there MUST NOT
// be more than one request in flight" (RFC 6525, Section 5.1.1).
func (a *Assoc) beginReconfig(now Time) {
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
func (a *Assoc) reconfigPath(now Time) (int, bool) {
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
func (a *Assoc) appendReconfig(b []byte, now Time, i, room int) []byte {
	r := &a.rc
	q := r.outstanding()
	if !r.send || r.path != i || wire.ChunkHeaderLen+len(q.chunk) > room || !a.paths[i].confirmed {
		return b
	}
	r.send, r.lateAsk = false, len(r.late) > 0
	if r.quiet && !r.hasSeen {
		r.seen, r.hasSeen = a.rx.tsns.highest(), true
	}
	// RFC 6525, Section 5.1.1: the sender "MUST start the Re-configuration
	// Timer", with "the same value as SCTP's data transmission timer".
	a.timers.set(timerReconf, now+a.paths[i].rto.Value())
	a.paths[i].lastSent = now
	return wire.AppendReConfig(b, wire.ReConfig{Params: q.chunk})
}

// reconfigTimeout sends the outstanding request again: "besides doubling the
// value, the sender MUST retransmit the RE-CONFIG chunk, increment the
// appropriate error counts … and perform threshold management" (RFC 6525,
// Section 5.1.1).
func (a *Assoc) reconfigTimeout(now Time) {
	r := &a.rc
	if r.outstanding() == nil {
		a.beginReconfig(now) // a pause is over
		return
	}
	if !a.state.canSendData() {
		return
	}
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
func (a *Assoc) giveUp(now Time) bool {
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

// handleResponse takes in a Re-configuration Response (RFC 6525, Section
// 5.2.7).
func (a *Assoc) handleResponse(now Time, x wire.ReConfigResponse) {
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
		q.err = fmt.Errorf("%w: %v", ErrDenied, x.Result)
		if p.kind == wire.ParamTSNReset {
			a.releaseIncoming()
		}
	case wire.ReConfigNothingToDo, wire.ReConfigPerformed:
		if p.kind == wire.ParamTSNReset && !x.HasTSNs {
			q.err = fmt.Errorf("%w: no TSNs", ErrDenied)
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
func (a *Assoc) yieldReconfig(now Time) {
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
	a.beginReconfig(now)
}

// performPart does what a successful request means here.
func (a *Assoc) performPart(p *rcPart, x *wire.ReConfigResponse) {
	switch p.kind {
	case wire.ParamOutgoingReset: // H4
		a.resetOut(p.streams)
	case wire.ParamTSNReset: // H5
		a.rc.late = nil
		if a.restartRx(TSN(x.SenderNextTSN)); a.state == Closed {
			return
		}
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

// holdIncoming holds back the data that comes while our SSN/TSN reset is
// outstanding. When the peer has performed it, it sends under new numbers at
// once, and its data may overtake its response, which tells from where on they
// are new.
func (a *Assoc) holdIncoming() { a.rx.reasm.deferReset(nil, a.rx.tsns.highest()) }

// easeIncoming lets the user have what came before the last request was sent
// to which the peer answered "in progress" now: it was sent before the reset.
// That is needed when the peer sends more than we can hold back.
func (a *Assoc) easeIncoming() {
	r := &a.rc
	if !r.hasSeen || !a.rx.reasm.window.pressed() {
		return
	}
	r.hasSeen = false
	if res := a.rx.reasm.advanceDefer(r.seen); res.violation() {
		a.violate(res.String())
	}
}

// putOff keeps a FORWARD-TSN or I-FORWARD-TSN for later that reaches beyond what
// had come when our SSN/TSN reset was sent: it may name messages of after the
// reset, or of before it among those that are held back. It is not acknowledged,
// so the peer repeats it, and does not perform the reset if it is of before it.
func (a *Assoc) putOff(c wire.Chunk, cum TSN) bool {
	r := &a.rc
	if !a.resettingAssoc() || a.otherSpace(cum.Sub(a.rx.tsns.cumTSN())) || cum.LessEq(a.rx.reasm.deferTSN) ||
		cum.LessEq(a.rx.tsns.cumTSN()) {
		return false
	}
	if len(r.late) == 0 {
		r.late, r.lateAsk = append(r.late, c.Raw...), false
	}
	a.rx.sack.refused()
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
	cum := TSN(binary.BigEndian.Uint32(c.Value)) // both kinds begin with it
	if a.rx.reasm.deferTSN.Less(cum) {
		if res := a.rx.reasm.advanceDefer(cum); res.violation() {
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
	if res := a.rx.reasm.undefer(in.deferred, in.streams, in.lastTSN); res.violation() {
		a.violate(res.String())
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

// partDone notes that part p of request q was answered. With the last one the
// timer stops and the next request can begin.
func (a *Assoc) partDone(now Time, q *rcRequest, p *rcPart) {
	r := &a.rc
	p.done = true
	for i := range q.list() {
		if !q.parts[i].done {
			return
		}
	}
	if q == r.queue[0] {
		a.timers.set(timerReconf, 0)
		r.send = false
	}
	i := slices.Index(r.queue, q)
	r.queue = slices.Delete(r.queue, i, i+1)
	if q.answers {
		r.in.answered(q.respSeq, q.err)
	}
	if q.err != nil && q.parts[0].kind == wire.ParamOutgoingReset {
		a.events.push(Event{Kind: EventOutStreamsReset, Streams: q.parts[0].streams, Err: q.err})
	}
	a.resumeStreams(q)
	a.requestDone(q.id, q.err)
	if next := r.outstanding(); i == 0 && next != nil {
		r.send, r.quiet, r.path = true, true, a.dataPath() // it had yielded
	}
	a.beginReconfig(now)
}
