package core

import "github.com/weftstack/weft/sctp/wire"

// lateSack is an acknowledgement that was put off. It came in front of data, as that
// of a request does in front of the answer, and takes as long to take in as the data:
// who waits for these goes first. For the association it is as if it had come later, save
// that round-trip times are those of when it came.
type lateSack struct {
	at        Time // when it came
	cum, rwnd uint32
	on        bool
}

// putOffSack keeps a SACK chunk for later, if nothing waits for it and data follows in
// the packet. It reports whether it did.
func (a *Assoc) putOffSack(now Time, c *wire.Chunk, rest []byte) bool {
	if len(rest) < wire.DataHeaderLen {
		return false
	}
	if t := wire.ChunkType(rest[0]); t != wire.ChunkData && t != wire.ChunkIData {
		return false
	}
	x, err := wire.ParseSack(*c)
	if err != nil || x.Gaps.Len() > 0 || x.Dups.Len() > 0 || !a.mayPutOff(TSN(x.CumTSN), x.RWND) {
		return false
	}
	a.putOffAck(now, TSN(x.CumTSN), x.RWND)
	return true
}

// mayPutOff reports whether nothing waits for what a SACK chunk says that tells of neither
// gaps nor duplicates.
func (a *Assoc) mayPutOff(cum TSN, rwnd uint32) bool {
	if a.state != Established || a.shut.wanted || a.cfg.TellDry {
		return false
	}
	if a.cfg.NoRACK || a.rx.sack.spread || a.spread() || len(a.paths) != 1 || a.rc.in.holding {
		return false
	}
	t := &a.tx
	if t.q.Pending() || t.q.blocked || t.sb.Outstanding() != 1 || t.sb.HasRtx() || len(t.sb.gaps) > 0 || t.sb.ZeroWindow() {
		return false
	}
	return rwnd != 0 && cum == t.sb.next-1 // else it might seem later to acknowledge what is sent until then
}

// putOffAck keeps what mayPutOff is true of.
func (a *Assoc) putOffAck(now Time, cum TSN, rwnd uint32) {
	a.tx.lateSack = lateSack{at: now, cum: uint32(cum), rwnd: rwnd, on: true}
}

// HasLateSack reports whether SettleSack would do something.
func (a *Assoc) HasLateSack() bool { return a.tx.lateSack.on }

// SettleSack takes in the acknowledgement that HandlePacket put off, if there is one
// (see Packet.Later). Events and PollTransmit may be due afterwards.
func (a *Assoc) SettleSack() {
	if a.tx.lateSack.on {
		a.settleSack()
	}
}

func (a *Assoc) settleSack() {
	l := a.tx.lateSack
	a.tx.lateSack.on = false
	if !a.state.canSendData() {
		return
	}
	a.takeSack(l.at, &wire.Sack{CumTSN: l.cum, RWND: l.rwnd})
	// What left meanwhile has the time that it would have otherwise.
	if p := &a.paths[0]; p.lastData > l.at && a.state != Closed && a.timers.runningPath(timerT3, 0) {
		a.timers.setPath(timerT3, 0, p.lastData+p.rto.Value())
	}
}
