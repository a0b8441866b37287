package core

import (
	"encoding/binary"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// PollTransmitGather is PollTransmit that leaves parts of messages where they are
// if they have least bytes or more, as IOVecs that it appends to *vecs, up
// to their capacity. The caller does not call [Assoc.TakeReleases] until it has sent the
// packets.
func (a *Assoc) PollTransmitGather(now clock.Time, buf []byte, maxSegs int, vecs *[]slab.IOVec, least int) (out []byte, tx Transmit, ok bool) {
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

// setChecksum is [wire.SetChecksum] for the packet b[at:] with parts in vecs. Its checksum field is zero.
func setChecksum(b []byte, at int, vecs []slab.IOVec) {
	c, from := uint32(0), at
	for i := range vecs {
		h := &vecs[i]
		c = wire.UpdateChecksum(c, b[from:h.At])
		c = wire.UpdateChecksum(c, h.B)
		from = h.At + len(h.B)
	}
	c = wire.UpdateChecksum(c, b[from:])
	binary.LittleEndian.PutUint32(b[at+checksumField:], c)
}

// setChecksumCopying is setChecksum for a packet with a deferred part, which it copies.
func setChecksumCopying(b []byte, at int, part slab.IOVec) {
	end := part.At + len(part.B)
	c := wire.UpdateChecksum(0, b[at:part.At])
	c = wire.CopyChecksum(c, b[part.At:end], part.B)
	if end < len(b) {
		c = wire.UpdateChecksum(c, b[end:])
	}
	binary.LittleEndian.PutUint32(b[at+checksumField:], c)
}
