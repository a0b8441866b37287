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

// onHost reports whether packets between these addresses do not leave the host:
// the kernel hands them from one socket to the other, with no checksum of its
// own, and memory detects its errors itself. Deviation (RFC 9653, Section 3): this
// method does not depend on the association, but on each packet.
func (t *Tuple) onHost() bool {
	l, r := t.Local.Addr(), t.Remote.Addr()
	return r == l || r.IsLoopback() || l.IsLoopback()
}

// verified reports whether the checksum of a packet for the association need not be
// computed: the caller did, or it is zero and we told the peer that this is acceptable.
func (c *situation) verified(p *Packet) bool { return p.verified(&c.cfg) }

// verified reports the same for an end with the configuration cfg, nil if the end announced
// nothing. RFC 9653, Section 5.3: an end that announced the method in its INIT or INIT ACK
// accepts zero in every packet of the association, so the end that dials accepts it in
// the INIT ACK. INIT and COOKIE ECHO are the exception: the receiver need not have an
// association yet, and Section 5.2 asks the senders of both for a checksum.
func (p *Packet) verified(cfg *Config) bool {
	if p.Verified {
		return true
	}
	if !p.mayBeZero(cfg) || len(p.Data) < wire.HeaderLen+wire.ChunkHeaderLen ||
		[4]byte(p.Data[wire.HeaderLen-4:wire.HeaderLen]) != [4]byte{} {
		return false
	}
	t := wire.ChunkType(p.Data[wire.HeaderLen])
	if t == wire.ChunkAuth {
		it := wire.NewChunks(p.Data[wire.HeaderLen:])
		it.Next() // the AUTH chunk
		if it.Next() {
			t = it.Current().Type
		}
	}
	return t != wire.ChunkInit && t != wire.ChunkCookieEcho
}

// mayBeZero reports whether cfg announces that zero is acceptable for the checksum
// between these addresses.
func (p *Packet) mayBeZero(cfg *Config) bool {
	return cfg != nil && (cfg.ZeroChecksum || cfg.ZeroChecksumLocal && p.onHost())
}
