package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// deferredSack is an acknowledgement that was put off. It came in front of data, as that
// of a request does in front of the answer, and takes as long to take in as the data:
// who waits for these goes first. For the association it is as if it had come later, save
// that round-trip times are those of when it came.
type deferredSack struct {
	at        clock.Time // when it came
	cum, rwnd uint32
	on        bool
}

// deferSackChunk keeps a SACK chunk for later, if nothing waits for it and data follows in
// the packet. It reports whether it did.
func (a *Assoc) deferSackChunk(now clock.Time, c *wire.Chunk, rest []byte) bool {
	if len(rest) < wire.DataHeaderLen {
		return false
	}
	if t := wire.ChunkType(rest[0]); t != wire.ChunkData && t != wire.ChunkIData {
		return false
	}
	x, err := wire.ParseSack(*c)
	if err != nil || x.Gaps.Len() > 0 || x.Dups.Len() > 0 || !a.canDeferSack(seq.TSN(x.CumTSN), x.RWND) {
		return false
	}
	a.deferSack(now, seq.TSN(x.CumTSN), x.RWND)
	return true
}

// canDeferSack reports whether nothing waits for what a SACK chunk says that tells of neither
// gaps nor duplicates.
func (a *Assoc) canDeferSack(cum seq.TSN, rwnd uint32) bool {
	if a.slow&slowDeferSack != 0 || a.in.control || a.cfg.TellDry || a.cfg.NoRACK || a.rx.sack.ForMultipath() {
		return false
	}
	t := &a.tx
	if t.q.Pending() || t.q.blocked || t.sb.Outstanding() != 1 || t.sb.HasRtx() || len(t.sb.gaps) > 0 || t.sb.ZeroWindow() {
		return false
	}
	return rwnd != 0 && cum == t.sb.next-1 // else it might seem later to acknowledge what is sent until then
}

// deferSack keeps what canDeferSack is true of.
func (a *Assoc) deferSack(now clock.Time, cum seq.TSN, rwnd uint32) {
	a.tx.deferredSack = deferredSack{at: now, cum: uint32(cum), rwnd: rwnd, on: true}
}

// HasDeferredSack reports whether ProcessDeferredSack would do something.
func (a *Assoc) HasDeferredSack() bool { return a.tx.deferredSack.on }

// ProcessDeferredSack takes in the acknowledgement that HandlePacket put off, if there is one
// (see Packet.Later). Events and PollTransmit may be due afterwards.
func (a *Assoc) ProcessDeferredSack() {
	if a.tx.deferredSack.on {
		a.processDeferredSack()
	}
}

func (a *Assoc) processDeferredSack() {
	l := a.tx.deferredSack
	a.tx.deferredSack.on = false
	if !a.state.canSendData() {
		return
	}
	a.takeSack(l.at, &wire.Sack{CumTSN: l.cum, RWND: l.rwnd})
	// What left meanwhile has the time that it would have otherwise.
	if p := &a.paths[0]; p.lastData > l.at && a.state != Closed && a.timers.runningPath(timerT3, 0) {
		a.timers.setPath(timerT3, 0, p.lastData+p.rto.Value())
	}
	a.recheckSlow()
}
