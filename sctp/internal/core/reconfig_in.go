package core

import (
	"encoding/binary"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// rcReceiver is what an end knows of its peer's requests.
type rcReceiver struct {
	next uint32 // the sequence number expected
	// answers are the results of the last requests, newest first, to be given
	// again to a retransmission of them.
	answers [maxReconfigAnswers]rcAnswer
	n       int
	path    int // where the last request came from

	// A deferred reset of our incoming streams (Section 5.2.2, E2).
	deferred bool
	seq      uint32 // of the request
	lastTSN  seq.TSN
	streams  []uint16 // none: all

	holding bool   // an SSN/TSN reset waits until we have sent everything
	holdSeq uint32 // of that request
}

// maxReconfigAnswers is how many results are kept: those of two chunks, because
// a peer may have put one off that we answered with "in progress".
const maxReconfigAnswers = 4

// rcAnswer is the result of a request.
type rcAnswer struct {
	wire.ReConfigResponse
	silent bool // our own request is the answer
}

// find returns the result of request seq, or nil.
func (r *rcReceiver) find(seq uint32) *rcAnswer {
	for i := range r.answers[:r.n] {
		if r.answers[i].RespSeq == seq {
			return &r.answers[i]
		}
	}
	return nil
}

// answered notes that our request which answers the peer's request seq is done.
func (r *rcReceiver) answered(seq uint32, err error) {
	if x := r.find(seq); x != nil {
		x.silent, x.Result = false, wire.ReConfigPerformed
		if err != nil {
			x.Result = wire.ReConfigDenied
		}
	}
}

// handleReconfig takes in a RE-CONFIG chunk (RFC 6525, Section 5.2.1). What is
// malformed, or holds a parameter of another type, is ignored.
func (a *Assoc) handleReconfig(now clock.Time, c wire.Chunk) {
	if !a.peer.features.has(featReconfig) || !a.state.connected() || a.state == ShutdownAckSent {
		return
	}
	x, err := wire.ParseReConfig(c)
	if err != nil || !validRequests(x.Params) {
		return
	}
	if !x.Allowed() {
		// RFC 6525, Section 3.1: "the receiver SHOULD send an ERROR chunk with a
		// Protocol Violation cause".
		a.ctl.reply(a.replyPath(a.in.path), wire.ChunkError, 0, wire.AppendProtocolViolation(nil, "combination of RE-CONFIG parameters"))
		return
	}
	a.performWaitingResets(now) // what waited may be done by now
	var reply []byte
	request := false // of ours that answers the peer's
	for it := wire.NewParams(x.Params); it.Next() && a.state != Closed; {
		p := it.Param()
		if p.Type == wire.ParamReConfigResponse {
			resp, _ := wire.ParseReConfigResponse(p)
			a.handleResponse(now, resp)
			continue
		}
		ans := a.answerRequest(now, p)
		if !ans.silent {
			reply = wire.AppendReConfigResponse(reply, ans.ReConfigResponse)
		}
		request = request || ans.silent && p.Type == wire.ParamIncomingReset
		a.rc.in.path = a.in.path
		// "a selective acknowledgment (SACK) chunk SHOULD be sent back".
		a.rx.sack.Force()
	}
	if len(reply) > 0 && a.state != Closed && !(request && a.joinRequest(reply)) {
		// "If multiple parameters have to be returned, they MUST be put into one
		// RE-CONFIG chunk."
		a.ctl.reply(a.replyPath(a.in.path), wire.ChunkReConfig, 0, reply)
	}
	if a.state != Closed {
		a.beginReconfig(now)
		a.progressShutdown(now) // it may have waited for an answer
	}
}

// joinRequest has a response go in one chunk with our reset request, which answers
// another request of the same chunk of the peer. It reports whether it will.
func (a *Assoc) joinRequest(response []byte) bool {
	r := &a.rc
	q := r.outstanding()
	i := a.replyPath(a.in.path)
	if q == nil || !q.answers || !r.send || q.parts[0].kind != wire.ParamOutgoingReset ||
		wire.ChunkHeaderLen+len(response)+len(q.chunk) > a.paths[i].pmdcs() {
		return false
	}
	r.response, r.path = append(r.response[:0], response...), i
	return true
}

// validRequests reports whether all parameters are of RFC 6525 and can be parsed.
func validRequests(params []byte) bool {
	it := wire.NewParams(params)
	for it.Next() {
		var err error
		switch p := it.Param(); p.Type {
		case wire.ParamOutgoingReset:
			_, err = wire.ParseOutgoingReset(p)
		case wire.ParamIncomingReset:
			_, err = wire.ParseIncomingReset(p)
		case wire.ParamTSNReset:
			_, err = wire.ParseTSNReset(p)
		case wire.ParamAddOutgoing:
			_, err = wire.ParseAddOutgoing(p)
		case wire.ParamAddIncoming:
			_, err = wire.ParseAddIncoming(p)
		case wire.ParamReConfigResponse:
			_, err = wire.ParseReConfigResponse(p)
		default:
			return false
		}
		if err != nil {
			return false
		}
	}
	return it.Err() == nil
}

// answerRequest returns the answer to a valid request: it processes the
// request if it has the next sequence number, and repeats itself for one of the
// last ones.
func (a *Assoc) answerRequest(now clock.Time, p wire.Param) rcAnswer {
	in := &a.rc.in
	seq := binary.BigEndian.Uint32(p.Value) // all requests begin with it
	if seq != in.next {
		old := in.find(seq)
		if old == nil {
			return rcAnswer{ReConfigResponse: wire.ReConfigResponse{RespSeq: seq, Result: wire.ReConfigBadSequence}}
		}
		if old.silent && a.rc.outstanding() != nil {
			// "the same RE-CONFIG chunk MUST to be sent back"; by the way that the
			// request came, as ours may be dead.
			a.rc.send, a.rc.path = true, a.replyPath(a.in.path)
		}
		return *old
	}
	in.next++
	copy(in.answers[1:], in.answers[:])
	in.n = min(in.n+1, len(in.answers))
	ans := &in.answers[0]
	*ans = rcAnswer{ReConfigResponse: wire.ReConfigResponse{RespSeq: seq}}
	switch p.Type {
	case wire.ParamOutgoingReset:
		x, _ := wire.ParseOutgoingReset(p)
		ans.Result = a.peerResets(now, &x)
	case wire.ParamIncomingReset:
		x, _ := wire.ParseIncomingReset(p)
		ans.Result, ans.silent = a.peerWantsReset(now, &x)
	case wire.ParamTSNReset:
		a.peerResetsAssoc(seq, ans)
	case wire.ParamAddOutgoing:
		x, _ := wire.ParseAddOutgoing(p)
		ans.Result = a.peerAdds(now, x.Streams)
	case wire.ParamAddIncoming:
		x, _ := wire.ParseAddIncoming(p)
		ans.Result, ans.silent = a.peerWantsMore(now, x.ReqSeq, x.Streams)
	}
	return *ans
}

// sidList copies the streams of a request; ok is false if one is out of range.
func sidList(v wire.Uint16s, streams int) (list []uint16, ok bool) {
	for i := range v.Len() {
		if int(v.At(i)) >= streams {
			return nil, false
		}
		list = append(list, v.At(i))
	}
	slices.Sort(list)
	return slices.Compact(list), true
}

// peerResets processes an Outgoing SSN Reset Request (RFC 6525, Section 5.2.2).
func (a *Assoc) peerResets(now clock.Time, x *wire.OutgoingReset) wire.ReConfigResult {
	// E1: it may be the answer to our Incoming SSN Reset Request.
	if q, p := a.rc.find(x.RespSeq); p != nil && p.kind == wire.ParamIncomingReset {
		a.partDone(now, q, p)
	}
	in := &a.rc.in
	list, ok := sidList(x.Streams, a.rx.streams)
	wait := seq.TSN(x.LastTSN).Sub(a.rx.tsns.CumTSN())
	switch {
	case a.cfg.DenyReconfig&ReconfigStreams != 0, wait > seq.MaxWindow:
		return wire.ReConfigDenied
	case !ok:
		return wire.ReConfigWrongSSN
	case wait <= 0 && !in.deferred && !a.resettingAssoc():
		return a.resetIn(list)
	}
	// E2. A peer that asks again with a new number before the first request was
	// performed has sent nothing on the streams in between.
	if in.deferred {
		if len(in.streams) == 0 {
			list = nil
		} else if len(list) > 0 {
			list = compactSIDs(append(list, in.streams...))
		}
		if seq.TSN(x.LastTSN).Less(in.lastTSN) {
			x.LastTSN = uint32(in.lastTSN)
		}
	}
	in.deferred, in.seq, in.lastTSN, in.streams = true, x.ReqSeq, seq.TSN(x.LastTSN), list
	// While our SSN/TSN reset is outstanding all data is held back, and it is not
	// known which of the resets comes first: this one waits.
	if !a.resettingAssoc() {
		a.rx.reasm.DeferReset(list, in.lastTSN)
	}
	return wire.ReConfigInProgress
}

// resetIn restarts the numbers of incoming streams, all if sids is empty (E3,
// E4).
func (a *Assoc) resetIn(sids []uint16) wire.ReConfigResult {
	if res := a.rx.reasm.ResetStreams(sids); res.Violation() {
		a.violate(res.String())
		return wire.ReConfigDenied
	}
	a.events.push(Event{Kind: EventStreamsReset, Streams: sids})
	return wire.ReConfigPerformed
}

// peerWantsReset processes an Incoming SSN Reset Request (RFC 6525, Section
// 5.2.3). With silent set our own request is the answer.
func (a *Assoc) peerWantsReset(now clock.Time, x *wire.IncomingReset) (_ wire.ReConfigResult, silent bool) {
	list, ok := sidList(x.Streams, a.tx.streams)
	switch {
	case a.cfg.DenyReconfig&ReconfigStreams != 0, len(list) > maxResetStreams, !a.state.canSendData():
		return wire.ReConfigDenied, false
	case !ok:
		return wire.ReConfigWrongSSN, false
	case a.resetUnderWay(list), a.tx.q.Fresh(list):
		return wire.ReConfigNothingToDo, false
	}
	return a.answerWith(now, &rcRequest{respSeq: x.ReqSeq, n: 1,
		parts: [2]rcPart{{kind: wire.ParamOutgoingReset, streams: list}}})
}

// resetUnderWay reports whether our outstanding request resets all streams of
// list: "completely overlaps the received Incoming SSN Reset Request".
func (a *Assoc) resetUnderWay(list []uint16) bool {
	q := a.rc.outstanding()
	if q == nil || q.parts[0].kind != wire.ParamOutgoingReset {
		return false
	}
	if q.pausesAll() || len(list) == 0 {
		return q.pausesAll()
	}
	for _, sid := range list {
		if _, found := slices.BinarySearch(q.parts[0].streams, sid); !found {
			return false
		}
	}
	return true
}

// answerWith queues our request q, which answers one of the peer's, before
// those of the user. If it has to wait, the peer is told "in progress".
func (a *Assoc) answerWith(now clock.Time, q *rcRequest) (_ wire.ReConfigResult, silent bool) {
	r := &a.rc
	at := 0
	if r.outstanding() != nil {
		at = 1
	}
	if slices.ContainsFunc(r.queue, func(q *rcRequest) bool { return q.answers }) {
		return wire.ReConfigAlreadyRunning, false
	}
	q.answers, q.fence = true, a.tx.q.Arrivals()
	r.queue = slices.Insert(r.queue, at, q)
	a.pauseStreams(q)
	a.beginReconfig(now)
	a.yieldReconfig(now)
	silent = r.outstanding() == q
	return wire.ReConfigInProgress, silent
}

// peerResetsAssoc processes an SSN/TSN Reset Request (RFC 6525, Section 5.2.4).
//
// G3 would have us take everything outstanding for acknowledged, so that it is
// lost if it was not received. Instead the answer is "in progress" until it is
// acknowledged.
func (a *Assoc) peerResetsAssoc(seq uint32, ans *rcAnswer) {
	in := &a.rc.in
	switch {
	case a.cfg.DenyReconfig&ReconfigAssoc != 0:
		ans.Result = wire.ReConfigDenied
	case a.resettingAssoc():
		ans.Result = wire.ReConfigAlreadyRunning
	default:
		ans.Result = wire.ReConfigInProgress
		in.holding, in.holdSeq = true, seq
		a.tx.q.ResumeAll()
		a.tx.q.PauseAll(0)
		a.finishAssocReset()
	}
}

// resettingAssoc reports whether our own SSN/TSN reset is outstanding.
func (a *Assoc) resettingAssoc() bool {
	q := a.rc.outstanding()
	return q != nil && q.parts[0].kind == wire.ParamTSNReset
}

// finishAssocReset performs the SSN/TSN reset that waits, if it can be.
func (a *Assoc) finishAssocReset() bool {
	in := &a.rc.in
	if !in.holding || !a.allDrained() {
		return false
	}
	in.holding = false
	// G1: "The value SHOULD be the smallest TSN not acknowledged by the receiver
	// of the request plus 2^31."
	next := a.rx.tsns.CumTSN() + 1 + 1<<31
	a.rc.newSpace = true
	if a.restartRx(next); a.state == Closed { // G4, G5
		return false
	}
	a.tx.q.ResetStreams(nil)
	a.ecn = ecnState{}
	a.resumeHeld()
	if ans := in.find(in.holdSeq); ans != nil { // G6
		ans.Result, ans.HasTSNs = wire.ReConfigPerformed, true
		// G2: "the highest TSN sent by the receiver of the request plus 1".
		ans.SenderNextTSN, ans.ReceiverNextTSN = uint32(a.tx.sb.NextTSN()), uint32(next)
	}
	a.events.push(Event{Kind: EventStreamsReset})
	a.events.push(Event{Kind: EventOutStreamsReset})
	return true
}

// resumeHeld lets the streams go on after an SSN/TSN reset of the peer's.
func (a *Assoc) resumeHeld() {
	a.tx.q.ResumeAll()
	for _, q := range a.rc.queue {
		a.pauseStreams(q)
	}
	a.tx.q.Reschedule()
}

// restartRx makes next the TSN that the peer sends next: what is unfinished is
// dropped as by a FORWARD-TSN for all streams, and all streams are reset.
func (a *Assoc) restartRx(next seq.TSN) {
	rx := &a.rx
	if res := rx.reasm.Restart(next); res.Violation() {
		a.violate(res.String())
		return
	}
	jump := false
	switch d := next.Sub(rx.tsns.CumTSN()); {
	case d > seq.MaxWindow || d < -seq.MaxWindow:
		rx.tsns.Init(next)
		jump = true
	case d > 1:
		rx.tsns.Forward(next - 1)
	}
	switch in := &a.rc.in; {
	case in.deferred && (jump || in.lastTSN.Less(next)):
		a.finishDeferred(wire.ReConfigPerformed) // this has done it
	case in.deferred:
		rx.reasm.DeferReset(in.streams, in.lastTSN)
	}
}

// peerAdds processes an Add Outgoing Streams Request (RFC 6525, Section 5.2.5).
func (a *Assoc) peerAdds(now clock.Time, n uint16) wire.ReConfigResult {
	// It may be the answer to our Add Incoming Streams Request, which it does not
	// name.
	for _, q := range a.rc.queue {
		if p := &q.parts[q.n-1]; p.kind == wire.ParamAddIncoming && len(q.chunk) > 0 && !p.done && p.count == n {
			a.partDone(now, q, p)
			break
		}
	}
	// "The SCTP endpoint SHOULD deny the request if the number of streams
	// exceeds a limit that should be configurable".
	if a.cfg.DenyReconfig&ReconfigAdd != 0 || n == 0 || a.rx.streams+int(n) > int(a.cfg.InStreams) {
		return wire.ReConfigDenied
	}
	a.rx.streams += int(n)
	a.rx.reasm.SetStreams(a.rx.streams)
	a.events.push(Event{Kind: EventStreamsAdded})
	return wire.ReConfigPerformed
}

// peerWantsMore processes an Add Incoming Streams Request (RFC 6525, Section
// 5.2.6).
func (a *Assoc) peerWantsMore(now clock.Time, seq uint32, n uint16) (_ wire.ReConfigResult, silent bool) {
	if a.cfg.DenyReconfig&ReconfigAdd != 0 || n == 0 || a.tx.streams+int(n) > int(a.cfg.MaxOutStreams) ||
		!a.state.canSendData() {
		return wire.ReConfigDenied, false
	}
	return a.answerWith(now, &rcRequest{respSeq: seq, n: 1, parts: [2]rcPart{{kind: wire.ParamAddOutgoing, count: n}}})
}

// performWaitingResets performs resets that had to wait for data, which may have come
// or been acknowledged, and tells the peer (E5).
func (a *Assoc) performWaitingResets(now clock.Time) {
	in := &a.rc.in
	if a.finishAssocReset() {
		a.answerAgain(in.holdSeq)
	}
	if in.deferred && in.lastTSN.LessEq(a.rx.tsns.CumTSN()) && !a.resettingAssoc() {
		if res := a.resetIn(in.streams); a.state != Closed {
			a.finishDeferred(res)
		}
	}
	if a.state != Closed {
		a.beginReconfig(now)
	}
}

// finishDeferred tells the peer the result of its reset that was deferred.
func (a *Assoc) finishDeferred(res wire.ReConfigResult) {
	in := &a.rc.in
	in.deferred = false
	if ans := in.find(in.seq); ans != nil {
		ans.Result = res
		a.answerAgain(in.seq)
	}
}

// answerAgain sends the result of request seq, which was "in progress" so far.
func (a *Assoc) answerAgain(seq uint32) {
	if ans := a.rc.in.find(seq); ans != nil {
		b := wire.AppendReConfigResponse(nil, ans.ReConfigResponse)
		a.ctl.reply(a.replyPath(a.rc.in.path), wire.ChunkReConfig, 0, b)
	}
}

// otherSpace reports whether a TSN that the peer names cannot be of the numbers
// in use now, d away from it: a straggler of before an SSN/TSN reset, whose
// numbers are 2^31 apart, or a forerunner of after it.
func (a *Assoc) otherSpace(d int) bool { return a.rc.newSpace && (d > 1<<30 || d < -1<<30) }
