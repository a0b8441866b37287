package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/slab"
)

// PollTransmitGather is PollTransmit that leaves parts of messages where they are
// if they have least bytes or more, as IOVecs that it appends to *vecs, up
// to their capacity. The caller does not call [Assoc.TakeReleases] until it has sent the
// packets.
func (a *Assoc) PollTransmitGather(
	now clock.Time, buf []byte, maxSegs int, vecs *[]slab.IOVec, least int,
) (out []byte, tx Transmit, ok bool) {
	if a.slow&(slowState|slowAuth) != 0 { // an AUTH chunk covers what follows it
		return a.PollTransmit(now, buf, maxSegs)
	}
	if a.BatchOpen() {
		return a.pollRetained(now, buf, maxSegs)
	}
	a.tx.sb.Gather(vecs, least)
	out, tx, ok = a.PollTransmit(now, buf, maxSegs)
	a.tx.sb.EndGather()
	return out, tx, ok
}
