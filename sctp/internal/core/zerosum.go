package core

import (
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/wire"
)

// seal completes a packet of the association, b from offset at, that was built for
// path i: it stores the checksum, unless the peer accepts zero in its place. RFC 9653,
// Section 5.2: packets with an INIT or a COOKIE ECHO, and answers to packets out of the
// blue, always have a checksum; they are built elsewhere. The same holds for packets with
// an ASCONF chunk, for which needsSum is set.
//
// Deviation (RFC 9653, Section 5.2, SHOULD): the few packets that are built elsewhere, the
// INIT ACK among them, have a checksum although the peer would do without.
func (a *Assoc) seal(b []byte, at, i int, needsSum bool) {
	sb := a.tx.sb
	if !needsSum && !a.summed(i) {
		sb.CopyDeferred(b)
		return
	}
	if h := sb.IOVecs(at); len(h) > 0 {
		sb.CopyDeferred(b)
		setChecksum(b, at, h)
	} else if d := sb.TakeDeferred(); d.B != nil {
		setChecksumCopying(b, at, d)
	} else {
		wire.SetChecksum(b[at:])
	}
}

// summed reports whether packets that are built for path i have a checksum.
func (r *reachability) summed(i int) bool {
	f := r.peer.features
	return !f.Has(feature.ZeroChecksum) && !(f.Has(feature.ZeroChecksumLocal) && r.paths[i].onHost())
}

// verified reports whether the checksum of a packet for the association need not be
// computed: the caller did, or it is zero and we told the peer that this is acceptable.
func (c *situation) verified(p *Packet) bool { return p.verified(&c.cfg) }
