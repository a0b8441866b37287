package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// ecnState is the receiving side of explicit congestion notification: RFC 9260
// reserves the chunks, and RFC 4960, Appendix A, describes them.
type ecnState struct {
	echo bool    // ECNE is sent with every packet until a CWR comes
	mark seq.TSN // lowest TSN of the first marked packet
	cwr  bool    // a CWR is to be sent
	cut  seq.TSN // for which ECNE
}

// markedPacket notes that a packet whose lowest new TSN is t was marked.
func (e *ecnState) markedPacket(t seq.TSN) {
	if !e.echo {
		e.echo, e.mark = true, t
	}
}

// handleECN takes in an ECNE or CWR chunk.
func (a *Assoc) handleECN(now clock.Time, c wire.Chunk) {
	if !a.peer.features.Has(feature.ECN) || !a.state.connected() {
		return
	}
	switch c.Type {
	case wire.ChunkECNE:
		x, err := wire.ParseECNE(c)
		if err != nil {
			return
		}
		i, ok := a.tx.sb.SentOn(seq.TSN(x.TSN))
		if !ok {
			i = a.dataPath()
		}
		if a.tx.sb.NewCongestionMark(i, seq.TSN(x.TSN)) {
			a.paths[i].cc.OnECN(now)
			a.paths[i].count.marks++
			a.tx.updatePacer(now, i)
		}
		a.ecn.cwr, a.ecn.cut = true, seq.TSN(x.TSN)
	case wire.ChunkCWR:
		if x, err := wire.ParseCWR(c); err == nil && a.ecn.mark.LessEq(seq.TSN(x.TSN)) {
			a.ecn.echo = false
		}
	}
}

// ecnChunkLen is the length of an ECNE or CWR chunk.
const ecnChunkLen = 8

// appendAck appends a SACK to b, and the ECNE that goes with every SACK until
// it is answered, if they fit into room bytes.
func (r *receiver) appendAck(b []byte, room int) []byte {
	if r.ecn.echo {
		room -= ecnChunkLen
	}
	if room < wire.SackHeaderLen {
		return b
	}
	b = r.rx.appendSack(b, room)
	r.rx.sacks++
	if r.ecn.echo {
		b = wire.AppendECNE(b, wire.ECNE{TSN: uint32(r.ecn.mark)})
	}
	return b
}
