// Package feature has the protocol extensions that an association may use: what
// announces them in INIT and INIT ACK, and what comes of two announcements.
package feature

import "github.com/weftstack/weft/sctp/wire"

// Set is a set of protocol extensions. Each side announces what it supports in
// INIT and INIT ACK; what both announced is used.
type Set uint16

const (
	// PartialReliability is FORWARD-TSN (RFC 3758, Section 3.3.1).
	PartialReliability Set = 1 << iota
	// IData is user message interleaving (RFC 8260, Section 2.2.1).
	IData
	// ECN is explicit congestion notification (RFC 9260, Table 5).
	ECN
	// IForwardTSN is I-FORWARD-TSN (RFC 8260, Section 2.3.1).
	IForwardTSN
	// ExtensionList tells that a Supported Extensions parameter was present.
	ExtensionList
	// Reconfig is the re-configuration of streams (RFC 6525).
	Reconfig
	// ZeroChecksum is that zero is acceptable as checksum, because DTLS detects
	// errors (RFC 9653).
	ZeroChecksum
	// Auth is the authentication of chunks (RFC 4895).
	Auth
	// Asconf is the change of addresses (RFC 5061). AsconfOpen, which is
	// never announced, tells that we do it without authentication.
	Asconf
	AsconfOpen
	// ZeroChecksumLocal is that zero is acceptable as checksum in packets that did not
	// leave the host.
	ZeroChecksumLocal
)

// Has reports whether f has all of g.
func (f Set) Has(g Set) bool { return f&g == g }

// AppendParams appends the parameters of INIT and INIT ACK that announce f.
func AppendParams(b []byte, f Set) []byte {
	if f.Has(ECN) {
		b = wire.AppendECN(b)
	}
	if f.Has(ZeroChecksum) {
		b = wire.AppendZeroChecksum(b, wire.EDMIDDTLS)
	} else if f.Has(ZeroChecksumLocal) {
		b = wire.AppendZeroChecksum(b, wire.EDMIDLocal)
	}
	if f.Has(PartialReliability) {
		b = wire.AppendForwardTSNSupported(b)
	}
	var list [8]wire.ChunkType
	ext := list[:0]
	if f.Has(PartialReliability) {
		ext = append(ext, wire.ChunkForwardTSN)
	}
	if f.Has(IData) {
		// RFC 8260, Section 2.2.1: the I-DATA chunk type is listed; and
		// I-FORWARD-TSN besides if partial reliability is supported too.
		ext = append(ext, wire.ChunkIData)
		if f.Has(IForwardTSN) {
			ext = append(ext, wire.ChunkIForwardTSN)
		}
	}
	if f.Has(Reconfig) {
		// RFC 6525, Section 5.1.1: "MUST include the chunk type of the RE-CONFIG
		// chunk in the Supported Extensions Parameter".
		ext = append(ext, wire.ChunkReConfig)
	}
	if f.Has(Auth) {
		ext = append(ext, wire.ChunkAuth)
	}
	if f.Has(Asconf) {
		// RFC 5061, Section 4.2.7: "MUST list the ASCONF, the ASCONF-ACK, and the
		// AUTH chunks".
		ext = append(ext, wire.ChunkAsconf, wire.ChunkAsconfAck)
	}
	if len(ext) > 0 {
		b = wire.AppendSupportedExtensions(b, ext...)
	}
	return b
}

// Listed returns what a list of supported extensions announces.
func Listed(list wire.ChunkTypes) Set {
	f := ExtensionList
	if list.Contains(wire.ChunkForwardTSN) {
		f |= PartialReliability
	}
	if list.Contains(wire.ChunkIData) {
		f |= IData
	}
	if list.Contains(wire.ChunkIForwardTSN) {
		f |= IForwardTSN
	}
	if list.Contains(wire.ChunkReConfig) {
		f |= Reconfig
	}
	if list.Contains(wire.ChunkAsconf) && list.Contains(wire.ChunkAsconfAck) {
		f |= Asconf
	}
	return f
}

// OfParam returns the feature that a parameter of INIT announces, if the peer can
// do without: RFC 3758, Section 3.3.3, has it told that it must.
func OfParam(p wire.Param) Set {
	if p.Type == wire.ParamForwardTSN {
		return PartialReliability
	}
	return 0
}

// Negotiate returns what is used of what both sides announced. With I-DATA,
// partial reliability takes I-FORWARD-TSN.
func Negotiate(ours, theirs Set) Set {
	f := ours & theirs
	if !f.Has(Auth) && !ours.Has(AsconfOpen) {
		f &^= Asconf
	}
	if f.Has(IData) && !f.Has(IForwardTSN) {
		f &^= PartialReliability
	}
	return f
}
