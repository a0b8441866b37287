package core

import "github.com/weftstack/weft/sctp/wire"

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

// onHost reports whether packets between these addresses do not leave the host:
// the kernel hands them from one socket to the other, with no checksum of its
// own, and memory detects its errors itself. Deviation (RFC 9653, Section 3): this
// method does not depend on the association, but on each packet.
func (t *Tuple) onHost() bool {
	l, r := t.Local.Addr(), t.Remote.Addr()
	return r == l || r.IsLoopback() || l.IsLoopback()
}
