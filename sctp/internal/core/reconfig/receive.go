package reconfig

import (
	"encoding/binary"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// received is what an end knows of its peer's requests.
type received struct {
	next uint32 // the sequence number expected
	n    uint8  // answers
	// answers are the results of the last requests, newest first, to be given
	// again to a retransmission of them.
	answers [MaxAnswers]answer
	path    int // where the last request came from

	// A deferred reset of our incoming streams (Section 5.2.2, E2).
	deferred bool
	holding  bool   // an SSN/TSN reset waits until we have sent everything
	seq      uint32 // of the request for the deferred reset
	lastTSN  seq.TSN
	holdSeq  uint32   // of the request for the SSN/TSN reset
	streams  []uint16 // none: all
}

// MaxAnswers is how many results are kept: those of two chunks, because
// a peer may have put one off that we answered with "in progress".
const MaxAnswers = 4

// answer is the result of a request.
type answer struct {
	wire.ReConfigResponse
	silent bool // our own request is the answer
}

// find returns the result of request seq, or nil.
func (r *received) find(seq uint32) *answer {
	for i := range r.answers[:r.n] {
		if r.answers[i].RespSeq == seq {
			return &r.answers[i]
		}
	}
	return nil
}

// answered notes that our request which answers the peer's request seq is done.
func (r *received) answered(seq uint32, err error) {
	if x := r.find(seq); x != nil {
		x.silent, x.Result = false, wire.ReConfigPerformed
		if err != nil {
			x.Result = wire.ReConfigDenied
		}
	}
}

// Parse returns the content of a RE-CONFIG chunk (RFC 6525, Section 5.2.1). What is
// malformed, or holds a parameter of another type, is to be ignored: ok is false.
func Parse(c wire.Chunk) (x wire.ReConfig, ok bool) {
	x, err := wire.ParseReConfig(c)
	return x, err == nil && validRequests(x.Params)
}

// Handle takes in the content of a RE-CONFIG chunk that came by path from: parameters in a
// combination that is allowed.
func (h *Handler) Handle(now clock.Time, from int, x wire.ReConfig) {
	h.from = from
	h.Progress(now) // what waited may be done by now
	var reply []byte
	asked := false // whether a request of ours answers one of the chunk
	for it := wire.NewParams(x.Params); it.Next() && !h.assoc.Closed(); {
		p := it.Param()
		if p.Type == wire.ParamReConfigResponse {
			resp, _ := wire.ParseReConfigResponse(p)
			h.handleResponse(now, resp)
			continue
		}
		ans := h.answerRequest(now, p)
		if !ans.silent {
			reply = wire.AppendReConfigResponse(reply, ans.ReConfigResponse)
		}
		asked = asked || ans.silent && p.Type == wire.ParamIncomingReset
		h.in.path = from
		// "a selective acknowledgment (SACK) chunk SHOULD be sent back".
		h.rx().ForceSack()
	}
	if len(reply) > 0 && !h.assoc.Closed() && !(asked && h.joinRequest(reply)) {
		// "If multiple parameters have to be returned, they MUST be put into one
		// RE-CONFIG chunk."
		h.assoc.Respond(from, reply)
	}
	if !h.assoc.Closed() {
		h.Begin(now)
	}
}

// joinRequest has a response go in one chunk with our reset request, which answers
// another request of the same chunk of the peer. It reports whether it will.
func (h *Handler) joinRequest(response []byte) bool {
	q := h.outstanding()
	i := h.assoc.ReplyPath(h.from)
	if q == nil || !q.answers || !h.send || q.parts[0].kind != wire.ParamOutgoingReset ||
		wire.ChunkHeaderLen+len(response)+len(q.chunk) > h.assoc.Room(i) {
		return false
	}
	h.response, h.path = append(h.response[:0], response...), i
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
func (h *Handler) answerRequest(now clock.Time, p wire.Param) answer {
	in := &h.in
	seq := binary.BigEndian.Uint32(p.Value) // all requests begin with it
	if seq != in.next {
		old := in.find(seq)
		if old == nil {
			return answer{ReConfigResponse: wire.ReConfigResponse{RespSeq: seq, Result: wire.ReConfigBadSequence}}
		}
		if old.silent && h.outstanding() != nil {
			// "the same RE-CONFIG chunk MUST to be sent back"; by the way that the
			// request came, as ours may be dead.
			h.send, h.path = true, h.assoc.ReplyPath(h.from)
		}
		return *old
	}
	in.next++
	copy(in.answers[1:], in.answers[:])
	in.n = min(in.n+1, MaxAnswers)
	ans := &in.answers[0]
	*ans = answer{ReConfigResponse: wire.ReConfigResponse{RespSeq: seq}}
	switch p.Type {
	case wire.ParamOutgoingReset:
		x, _ := wire.ParseOutgoingReset(p)
		ans.Result = h.peerResets(now, &x)
	case wire.ParamIncomingReset:
		x, _ := wire.ParseIncomingReset(p)
		ans.Result, ans.silent = h.peerWantsReset(now, &x)
	case wire.ParamTSNReset:
		h.peerResetsTSNs(seq, ans)
	case wire.ParamAddOutgoing:
		x, _ := wire.ParseAddOutgoing(p)
		ans.Result = h.peerAdds(now, x.Streams)
	case wire.ParamAddIncoming:
		x, _ := wire.ParseAddIncoming(p)
		ans.Result, ans.silent = h.peerWantsMore(now, x.ReqSeq, x.Streams)
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
func (h *Handler) peerResets(now clock.Time, x *wire.OutgoingReset) wire.ReConfigResult {
	// E1: it may be the answer to our Incoming SSN Reset Request.
	if q, p := h.find(x.RespSeq); p != nil && p.kind == wire.ParamIncomingReset {
		h.partDone(now, q, p)
	}
	in := &h.in
	list, ok := sidList(x.Streams, h.rx().Streams())
	wait := seq.TSN(x.LastTSN).Sub(h.rx().CumTSN())
	switch {
	case h.cfg.Deny&Streams != 0, wait > seq.MaxWindow:
		return wire.ReConfigDenied
	case !ok:
		return wire.ReConfigWrongSSN
	case wait <= 0 && !in.deferred && !h.ResettingTSNs() && !h.rx().Unread(list):
		return h.resetIn(list)
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
	if !h.ResettingTSNs() {
		h.rx().DeferReset(list, in.lastTSN)
	}
	return wire.ReConfigInProgress
}

// resetIn restarts the numbers of incoming streams, all if sids is empty (E3,
// E4).
func (h *Handler) resetIn(sids []uint16) wire.ReConfigResult {
	if !h.rx().ResetStreams(sids) {
		return wire.ReConfigDenied
	}
	h.assoc.InReset(sids)
	return wire.ReConfigPerformed
}

// peerWantsReset processes an Incoming SSN Reset Request (RFC 6525, Section
// 5.2.3). With silent set our own request is the answer.
func (h *Handler) peerWantsReset(now clock.Time, x *wire.IncomingReset) (_ wire.ReConfigResult, silent bool) {
	list, ok := sidList(x.Streams, h.tx().Streams())
	switch {
	case h.cfg.Deny&Streams != 0, len(list) > MaxResetStreams, !h.assoc.CanSend():
		return wire.ReConfigDenied, false
	case !ok:
		return wire.ReConfigWrongSSN, false
	case h.resetUnderWay(list), h.tx().Fresh(list):
		return wire.ReConfigNothingToDo, false
	}
	return h.answerWith(now, &request{respSeq: x.ReqSeq, n: 1,
		parts: [2]part{{kind: wire.ParamOutgoingReset, streams: list}}})
}

// resetUnderWay reports whether our outstanding request resets all streams of
// list: "completely overlaps the received Incoming SSN Reset Request".
func (h *Handler) resetUnderWay(list []uint16) bool {
	q := h.outstanding()
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
func (h *Handler) answerWith(now clock.Time, q *request) (_ wire.ReConfigResult, silent bool) {
	at := 0
	if h.outstanding() != nil {
		at = 1
	}
	if slices.ContainsFunc(h.queue, func(q *request) bool { return q.answers }) {
		return wire.ReConfigAlreadyRunning, false
	}
	q.answers, q.fence = true, h.tx().Arrivals()
	h.queue = slices.Insert(h.queue, at, q)
	h.pauseStreams(q)
	h.Begin(now)
	h.yield(now)
	silent = h.outstanding() == q
	return wire.ReConfigInProgress, silent
}

// peerResetsTSNs processes an SSN/TSN Reset Request (RFC 6525, Section 5.2.4).
//
// G3 would have us take everything outstanding for acknowledged, so that it is
// lost if it was not received. Instead the answer is "in progress" until it is
// acknowledged.
func (h *Handler) peerResetsTSNs(seq uint32, ans *answer) {
	in := &h.in
	switch {
	case h.cfg.Deny&TSNs != 0:
		ans.Result = wire.ReConfigDenied
	case h.ResettingTSNs():
		ans.Result = wire.ReConfigAlreadyRunning
	default:
		ans.Result = wire.ReConfigInProgress
		in.holding, in.holdSeq = true, seq
		h.tx().ResumeAll()
		h.tx().PauseAll(0)
		h.finishTSNReset()
	}
}

// finishTSNReset performs the SSN/TSN reset that waits, if it can be.
func (h *Handler) finishTSNReset() bool {
	in := &h.in
	if !in.holding || !h.tx().Idle() {
		return false
	}
	in.holding = false
	// G1: "The value SHOULD be the smallest TSN not acknowledged by the receiver
	// of the request plus 2^31."
	next := h.rx().CumTSN() + 1 + 1<<31
	h.newSpace = true
	if h.restartRx(next); h.assoc.Closed() { // G4, G5
		return false
	}
	h.tx().ResetStreams(nil)
	h.assoc.TSNsReset()
	h.resumeHeld()
	if ans := in.find(in.holdSeq); ans != nil { // G6
		ans.Result, ans.HasTSNs = wire.ReConfigPerformed, true
		// G2: "the highest TSN sent by the receiver of the request plus 1".
		ans.SenderNextTSN, ans.ReceiverNextTSN = uint32(h.tx().NextTSN()), uint32(next)
	}
	h.assoc.InReset(nil)
	h.assoc.OutReset(nil, nil)
	return true
}

// resumeHeld lets the streams go on after an SSN/TSN reset of the peer's.
func (h *Handler) resumeHeld() {
	h.tx().ResumeAll()
	for _, q := range h.queue {
		h.pauseStreams(q)
	}
	h.tx().Reschedule()
}

// restartRx makes next the TSN that the peer sends next: what is unfinished is
// dropped as by a FORWARD-TSN for all streams, and all streams are reset.
func (h *Handler) restartRx(next seq.TSN) {
	jumped, ok := h.rx().Restart(next)
	if !ok {
		return
	}
	switch in := &h.in; {
	case in.deferred && (jumped || in.lastTSN.Less(next)):
		h.finishDeferred(wire.ReConfigPerformed) // this has done it
	case in.deferred:
		h.rx().DeferReset(in.streams, in.lastTSN)
	}
}

// peerAdds processes an Add Outgoing Streams Request (RFC 6525, Section 5.2.5).
func (h *Handler) peerAdds(now clock.Time, n uint16) wire.ReConfigResult {
	// It may be the answer to our Add Incoming Streams Request, which it does not
	// name.
	for _, q := range h.queue {
		if p := &q.parts[q.n-1]; p.kind == wire.ParamAddIncoming && q.begun() && !p.done && p.count == n {
			h.partDone(now, q, p)
			break
		}
	}
	// "The SCTP endpoint SHOULD deny the request if the number of streams
	// exceeds a limit that should be configurable".
	if h.cfg.Deny&Add != 0 || n == 0 || h.rx().Streams()+int(n) > int(h.cfg.InStreams) {
		return wire.ReConfigDenied
	}
	h.rx().SetStreams(h.rx().Streams() + int(n))
	h.assoc.Added()
	return wire.ReConfigPerformed
}

// peerWantsMore processes an Add Incoming Streams Request (RFC 6525, Section
// 5.2.6).
func (h *Handler) peerWantsMore(now clock.Time, seq uint32, n uint16) (_ wire.ReConfigResult, silent bool) {
	if h.cfg.Deny&Add != 0 || n == 0 || h.tx().Streams()+int(n) > int(h.cfg.MaxOutStreams) ||
		!h.assoc.CanSend() {
		return wire.ReConfigDenied, false
	}
	return h.answerWith(now, &request{respSeq: seq, n: 1, parts: [2]part{{kind: wire.ParamAddOutgoing, count: n}}})
}

// Progress performs resets that had to wait for data, which may have come, been taken by the
// user or been acknowledged, and tells the peer (E5).
func (h *Handler) Progress(now clock.Time) {
	in := &h.in
	if h.finishTSNReset() {
		h.answerAgain(in.holdSeq)
	}
	if in.deferred && in.lastTSN.LessEq(h.rx().CumTSN()) && !h.ResettingTSNs() && !h.rx().Unread(in.streams) {
		if res := h.resetIn(in.streams); !h.assoc.Closed() {
			h.finishDeferred(res)
		}
	}
	if !h.assoc.Closed() {
		h.Begin(now)
	}
}

// finishDeferred tells the peer the result of its reset that was deferred.
func (h *Handler) finishDeferred(res wire.ReConfigResult) {
	in := &h.in
	in.deferred = false
	if ans := in.find(in.seq); ans != nil {
		ans.Result = res
		h.answerAgain(in.seq)
	}
}

// answerAgain sends the result of request seq, which was "in progress" so far.
func (h *Handler) answerAgain(seq uint32) {
	if ans := h.in.find(seq); ans != nil {
		h.assoc.Respond(h.in.path, wire.AppendReConfigResponse(nil, ans.ReConfigResponse))
	}
}
