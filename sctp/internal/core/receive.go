package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/sackgen"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// dataReceiver takes in data: which TSNs came, the data itself, and when to acknowledge.
type dataReceiver struct {
	initial seq.TSN
	tsns    seq.Map
	reasm   *reasm.Queue // nil until the peer's streams are known
	sack    sackgen.Generator
	gaps    []wire.GapBlock
	streams int
	// counters
	bytes, messages, chunks, dups, sacks uint64

	opened bool
	first  reasm.Queue // in the same place: see Assoc.first
}

// begun reports whether any data has come.
func (r *dataReceiver) begun() bool {
	return r.reasm != nil && r.tsns.Highest() != r.initial-1
}

// open prepares to receive on so many streams from a peer that begins at TSN
// initial.
func (r *dataReceiver) open(cfg *Config, streams int, initial seq.TSN, interleaved bool, seed uint64) {
	id, kept := uint64(0), 0
	if r.reasm != nil { // the peer restarted: the numbers of messages go on
		id, kept = r.reasm.Carried()
	}
	r.close()
	r.initial, r.streams = initial, streams
	r.tsns.Init(initial)
	r.sack.Init(clock.Time(cfg.SackDelay), cfg.SackEvery)
	r.sack.SetMultipath(cfg.Multipath)
	if cfg.SackDelay == 0 {
		r.sack.SetNoDelay(true)
	}
	if !r.opened {
		r.opened, r.reasm = true, &r.first
	} else {
		r.reasm = new(reasm.Queue) // the user may still have pieces of the first
	}
	r.reasm.Init(reasm.Config{Interleaved: interleaved, Pieces: cfg.Pieces, Streams: streams,
		Limit: cfg.RecvBuffer, Seed: seed}, initial)
	r.reasm.Resume(id, kept)
}

func (r *dataReceiver) close() {
	if r.reasm != nil {
		r.reasm.Close()
		r.reasm = nil
	}
}

// handleData takes in a DATA chunk, or an I-DATA chunk if idata is set (RFC
// 9260, Section 6.2).
func (a *Assoc) handleData(c *wire.Chunk, idata bool) {
	if !a.state.canReceiveData() {
		return // Section 6: "received in any other state SHOULD be discarded"
	}
	rx := &a.rx
	if !idata && a.peer.features.Has(feature.IData) {
		// RFC 8260, Section 2.2.3: "the receiver of the DATA chunk MUST abort
		// the association".
		a.violate("DATA chunk although I-DATA was negotiated")
		return
	}
	var d wire.Data
	var err error
	if idata {
		err = d.ParseI(c)
	} else {
		err = d.Parse(c)
	}
	switch err {
	case nil:
	case wire.ErrNoUserData:
		a.abort(wire.AppendNoUserData(nil, d.TSN)) // Section 6.2
		return
	default:
		a.violate("malformed DATA chunk")
		return
	}
	a.shut.gotData = true
	rx.chunks++
	t := seq.TSN(d.TSN)
	if a.in.ecn == ECNCE && a.peer.features.Has(feature.ECN) {
		a.ecn.markedPacket(t)
	}
	r := rx.tsns.Check(t)
	if r != seq.New {
		rx.tsns.Observe(t)
		rx.sack.Data(r, d.Immediate)
		rx.dups++
		return
	}
	if int(d.SID) >= rx.streams {
		// Section 6.5: acknowledged, reported and discarded.
		rx.tsns.Observe(t)
		rx.sack.Data(seq.New, true)
		a.ctl.reply(a.replyPath(a.in.path), wire.ChunkError, 0, wire.AppendInvalidStream(nil, d.SID))
		a.slow |= slowReplies
		return
	}
	if !rx.reasm.Room(&rx.tsns, t, len(d.Payload)) {
		rx.sack.Refused() // "MUST immediately send back a SACK chunk"
		return
	}
	switch res := rx.reasm.Add(&d, a.in.buf); {
	case res.Violation():
		a.violate(res.String())
		return
	case res == reasm.Full:
		rx.sack.Refused()
		return
	}
	rx.tsns.Observe(t)
	rx.sack.Data(seq.New, d.Immediate)
	rx.bytes += uint64(len(d.Payload))
	if d.End {
		rx.messages++
	}
}

// handleForwardTSN takes in a FORWARD-TSN (RFC 3758, Section 3.6).
func (a *Assoc) handleForwardTSN(c wire.Chunk) {
	if !a.state.canReceiveData() {
		return
	}
	if a.peer.features.Has(feature.IData) {
		// RFC 8260, Section 2.3.1: "the receiver of the FORWARD-TSN chunk MUST
		// abort the association".
		a.violate("FORWARD-TSN although I-DATA was negotiated")
		return
	}
	x, err := wire.ParseForwardTSN(c)
	if err != nil {
		return
	}
	if a.rc.PutOff(c, seq.TSN(x.CumTSN)) || !a.canForward(seq.TSN(x.CumTSN)) {
		return
	}
	for i := range x.Skips.Len() {
		s := x.Skips.At(i)
		a.rx.reasm.SkipMessages(s.SID, false, uint32(s.SSN))
	}
	a.rx.reasm.Forward(seq.TSN(x.CumTSN))
}

// handleIForwardTSN takes in an I-FORWARD-TSN (RFC 8260, Section 2.3.1).
func (a *Assoc) handleIForwardTSN(c wire.Chunk) {
	if !a.state.canReceiveData() {
		return
	}
	if !a.peer.features.Has(feature.IData) {
		a.violate("I-FORWARD-TSN although I-DATA was not negotiated")
		return
	}
	x, err := wire.ParseIForwardTSN(c)
	if err != nil || a.rc.PutOff(c, seq.TSN(x.CumTSN)) || !a.canForward(seq.TSN(x.CumTSN)) {
		return
	}
	for i := range x.Skips.Len() {
		s := x.Skips.At(i)
		a.rx.reasm.SkipMessages(s.SID, s.Unordered, s.MID)
	}
	a.rx.reasm.Forward(seq.TSN(x.CumTSN))
}

// canForward moves the cumulative TSN to cum and reports whether that was news.
// A peer can skip no more than what the tracker could hold.
func (a *Assoc) canForward(cum seq.TSN) bool {
	a.shut.gotData = true
	switch d := cum.Sub(a.rx.tsns.CumTSN()); {
	case a.rc.OtherSpace(d):
		return false
	case d > seq.MaxWindow:
		a.violate("FORWARD-TSN beyond any window")
		return false
	}
	moved := a.rx.tsns.Forward(cum)
	a.rx.sack.Forwarded(moved)
	return moved
}

// appendSack appends a SACK with everything received to b, as many gap blocks
// and duplicates as fit into room bytes (RFC 9260, Sections 6.2 and 6.7).
func (r *dataReceiver) appendSack(b []byte, room int) []byte {
	n := (room - wire.SackHeaderLen) / 4
	r.gaps = r.tsns.AppendGaps(r.gaps[:0], min(n, maxGapBlocks))
	dups := r.tsns.Duplicates()
	dups = dups[:min(len(dups), n-len(r.gaps))]
	rwnd := r.reasm.Rwnd()
	at := len(b)
	b = wire.AppendSack(b, uint32(r.tsns.CumTSN()), rwnd, r.gaps, dups)
	if r.sack.ForMultipath() {
		setSackPackets(b[at:], r.sack.DataPackets())
	}
	r.tsns.ClearDuplicates()
	r.reasm.Advertised(rwnd)
	r.sack.Sent()
	return b
}

// maxEarlySack bounds the packet of earlySack.
const maxEarlySack = 1480

// earlySack queues a SACK of its own in the midst of a receive batch. It leaves
// room for other packets that stand alone, and does not overtake answers: after
// a reset of all TSNs (RFC 6525, Section 5.2.4) the peer understands a SACK only
// when it has ours.
func (a *Assoc) earlySack() {
	i := a.sackPath(a.paths, a.dataPath())
	p := &a.paths[i]
	if !a.state.connected() || a.state == ShutdownSent || !p.confirmed || a.standalone.n >= maxReplyPackets-1 ||
		a.ctl.n > 0 || a.hs.sendAck {
		return
	}
	r := a.standalone.slot(p.Tuple)
	r.data = wire.AppendHeader(r.data, a.header())
	r.data = a.appendAck(r.data, min(p.mtu, maxEarlySack)-len(r.data))
	a.seal(r.data, 0, i, false)
	a.slow |= slowReplies
}

// maxGapBlocks bounds the gap ack blocks of one SACK.
const maxGapBlocks = 4096
