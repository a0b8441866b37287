package core

import (
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// peerInfo is what the peer said of itself.
type peerInfo struct {
	port          uint16
	tag           uint32 // 0 until known
	features      feature.Set
	adaptation    uint32
	hasAdaptation bool
}

// learn notes the extensions that are in use and the adaptation indication.
func (p *peerInfo) learn(f feature.Set, adaptation uint32, has bool) {
	p.features, p.adaptation, p.hasAdaptation = f, adaptation, has
}

// identity is what tells an association from others, at both ends, and what they agreed on when
// it began.
type identity struct {
	port uint16  // SCTP port here
	tag  uint32  // local verification tag
	tsn  seq.TSN // our initial TSN
	peer peerInfo
}

// Tag returns the local verification tag. It changes when the peer restarts.
func (d *identity) Tag() uint32 { return d.tag }

// PeerTag returns the peer's verification tag, 0 if it is not known yet.
func (d *identity) PeerTag() uint32 { return d.peer.tag }

// Ports returns the SCTP ports.
func (d *identity) Ports() (local, peer uint16) { return d.port, d.peer.port }

// PeerAdaptation returns the peer's Adaptation Layer Indication, if any.
func (d *identity) PeerAdaptation() (uint32, bool) { return d.peer.adaptation, d.peer.hasAdaptation }

// Interleaving reports whether user messages are interleaved (RFC 8260), and
// PartialReliability whether messages can be abandoned (RFC 3758): both ends
// must want it.
func (d *identity) Interleaving() bool { return d.peer.features.Has(feature.IData) }

// PartialReliability reports whether the peer understands FORWARD-TSN.
func (d *identity) PartialReliability() bool { return d.peer.features.Has(feature.PartialReliability) }

// header returns the common header of packets to the peer.
func (d *identity) header() wire.Header {
	return wire.Header{SrcPort: d.port, DstPort: d.peer.port, VTag: d.peer.tag}
}

// tagOrReflected is the tag rule of ABORT and SHUTDOWN COMPLETE (RFC 9260,
// Section 8.5.1, B and C): our tag without the T bit, or the peer's with it.
func (d *identity) tagOrReflected(tag uint32, flags uint8) bool {
	if flags&1 == 0 {
		return tag == d.tag
	}
	return d.peer.tag != 0 && tag == d.peer.tag
}

// dataECN returns the codepoint of packets with new data.
func (d *identity) dataECN() uint8 {
	if d.peer.features.Has(feature.ECN) {
		return ECNECT0
	}
	return ECNNotECT
}

// Extensions returns what is in use.
func (d *identity) Extensions() Extensions {
	f := d.peer.features
	return Extensions{PartialReliability: f.Has(feature.PartialReliability), Interleaving: f.Has(feature.IData),
		Reconfig: f.Has(feature.Reconfig), Authentication: f.Has(feature.Auth), AddressChange: f.Has(feature.Asconf),
		ECN: f.Has(feature.ECN), ZeroChecksum: f.Has(feature.ZeroChecksum)}
}
