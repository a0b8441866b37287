package core

import (
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// seal completes a packet of the association, b from offset at, that was built for
// path i: it stores the checksum, unless the peer accepts zero in its place. RFC 9653, Section 5.2:
// packets that contain an INIT or a COOKIE ECHO, and those that answer packets
// out of the blue, have a checksum always; they are built elsewhere.
func (a *Assoc) seal(b []byte, at, i int) {
	g := &a.tx.sb.gather
	if !a.summed(i) {
		g.put(b)
		return
	}
	h := a.holes(at)
	switch {
	case len(h) > 0:
		g.put(b)
		setChecksum(b, at, h)
	case g.late.B != nil:
		setChecksumLate(b, at, g.late)
		g.late = slab.Hole{}
	default:
		wire.SetChecksum(b[at:])
	}
}

// summed reports whether packets that are built for path i have a checksum.
func (a *Assoc) summed(i int) bool {
	f := a.peer.features
	return !f.has(featZeroSum) && !(f.has(featZeroLocal) && a.paths[i].onHost())
}

// onHost reports whether packets between these addresses do not leave the host:
// the kernel hands them from one socket to the other, with no checksum of its
// own, and memory detects its errors itself. Deviation (RFC 9653, Section 3): this
// method does not depend on the association, but on each packet.
func (t *Tuple) onHost() bool {
	l, r := t.Local.Addr(), t.Remote.Addr()
	return r == l || r.IsLoopback() || l.IsLoopback()
}

// verified reports whether the checksum of a packet for the association need not
// be looked at: the caller did, or it is zero and we told the peer that this is
// acceptable (RFC 9653, Section 5.3), save in the packets that must have one.
func (a *Assoc) verified(p *Packet) bool { return p.verified(&a.cfg) }

func (p *Packet) verified(cfg *Config) bool {
	if p.Verified {
		return true
	}
	if !p.mayBeZero(cfg) || len(p.Data) < wire.HeaderLen+wire.ChunkHeaderLen ||
		[4]byte(p.Data[wire.HeaderLen-4:wire.HeaderLen]) != [4]byte{} {
		return false
	}
	switch wire.ChunkType(p.Data[wire.HeaderLen]) {
	case wire.ChunkInit, wire.ChunkInitAck, wire.ChunkCookieEcho:
		return false
	}
	return true
}

// mayBeZero reports whether we told the peer that zero is acceptable for the checksum
// between these addresses.
func (p *Packet) mayBeZero(cfg *Config) bool {
	return cfg.ZeroChecksum || cfg.ZeroChecksumLocal && p.onHost()
}
