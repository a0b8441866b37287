package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/wire"
)

// deferSackChunk defers a SACK chunk if canDeferSack allows it and data follows in the
// packet. It reports whether it did.
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
	a.tx.deferSack(now, seq.TSN(x.CumTSN), x.RWND)
	return true
}

// canDeferSack reports whether a SACK without gaps and duplicates can be deferred: it
// acknowledges the only outstanding chunk, and nothing waits to be sent or to be told of it.
func (a *Assoc) canDeferSack(cum seq.TSN, rwnd uint32) bool {
	if a.slow&slowDeferSack != 0 || a.in.control || a.cfg.TellDry || a.cfg.NoRACK || a.rx.sack.ForMultipath() {
		return false
	}
	t := &a.tx
	if t.q.Pending() || t.q.Blocked() || t.sb.Outstanding() != 1 || t.sb.HasRtx() || t.sb.HasGaps() || t.sb.ZeroWindow() {
		return false
	}
	return rwnd != 0 && cum == t.sb.NextTSN()-1 // any other could seem to acknowledge what is sent meanwhile
}

// deferSack keeps a SACK for which canDeferSack holds.
func (t *sender) deferSack(now clock.Time, cum seq.TSN, rwnd uint32) {
	t.deferredSack = deferredSack{at: now, cum: uint32(cum), rwnd: rwnd, on: true}
}

// HasDeferredSack reports whether ProcessDeferredSack would do something.
func (a *Assoc) HasDeferredSack() bool { return a.tx.deferredSack.on }

// ProcessDeferredSack processes the SACK that HandlePacket or HandleSmall deferred, if there is
// one (see Packet.DeferSack). Events and PollTransmit may be due afterwards.
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
	// T3-rtx runs from when data left last, as if the SACK had not been deferred.
	if p := &a.paths[0]; p.lastData > l.at && a.state != Closed && a.timers.RunningPath(timer.T3, 0) {
		a.timers.StartPath(timer.T3, 0, p.lastData+p.rto.Value())
	}
	a.recheckSlow()
}
