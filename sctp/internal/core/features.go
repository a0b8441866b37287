package core

import "github.com/weftstack/weft/sctp/wire"

// features is a set of protocol extensions. Each side announces what it
// supports in INIT and INIT ACK; what both announced is used.
type features uint16

const (
	// featPR is FORWARD-TSN (RFC 3758, Section 3.3.1).
	featPR features = 1 << iota
	// featIData is user message interleaving (RFC 8260, Section 2.2.1).
	featIData
	// featECN is explicit congestion notification (RFC 9260, Table 5).
	featECN
	// featIForward is I-FORWARD-TSN (RFC 8260, Section 2.3.1).
	featIForward
	// featExtList tells that a Supported Extensions parameter was present.
	featExtList
	// featReconfig is the re-configuration of streams (RFC 6525).
	featReconfig
	// featZeroSum is that zero is acceptable as checksum, because DTLS detects
	// errors (RFC 9653).
	featZeroSum
	// featAuth is the authentication of chunks (RFC 4895).
	featAuth
	// featAsconf is the change of addresses (RFC 5061). featAsconfOpen, which is
	// never announced, tells that we do it without authentication.
	featAsconf
	featAsconfOpen
	// featZeroLocal is that zero is acceptable as checksum in packets that did not
	// leave the host.
	featZeroLocal
)

func (f features) has(g features) bool { return f&g == g }

// localFeatures returns what cfg lets us announce.
func localFeatures(cfg *Config) features {
	f := featExtList
	if !cfg.NoPartialReliability {
		f |= featPR
	}
	if !cfg.NoInterleaving {
		f |= featIData
	}
	if f.has(featPR | featIData) {
		f |= featIForward
	}
	if !cfg.NoECN {
		f |= featECN
	}
	if !cfg.NoReconfig {
		f |= featReconfig
	}
	if cfg.ZeroChecksum {
		f |= featZeroSum
	} else if cfg.ZeroChecksumLocal {
		f |= featZeroLocal
	}
	if cfg.Auth != nil {
		f |= featAuth
	}
	if cfg.ChangeAddrs {
		f |= featAsconf
		if cfg.Auth == nil {
			f |= featAsconfOpen
		}
	}
	return f
}

// appendFeatures appends the parameters of INIT and INIT ACK that announce f.
func appendFeatures(b []byte, f features) []byte {
	if f.has(featECN) {
		b = wire.AppendECN(b)
	}
	if f.has(featZeroSum) {
		b = wire.AppendZeroChecksum(b, wire.EDMIDDTLS)
	} else if f.has(featZeroLocal) {
		b = wire.AppendZeroChecksum(b, wire.EDMIDLocal)
	}
	if f.has(featPR) {
		b = wire.AppendForwardTSNSupported(b)
	}
	var list [8]wire.ChunkType
	ext := list[:0]
	if f.has(featPR) {
		ext = append(ext, wire.ChunkForwardTSN)
	}
	if f.has(featIData) {
		// RFC 8260, Section 2.2.1: the I-DATA chunk type is listed; and
		// I-FORWARD-TSN besides if partial reliability is supported too.
		ext = append(ext, wire.ChunkIData)
		if f.has(featIForward) {
			ext = append(ext, wire.ChunkIForwardTSN)
		}
	}
	if f.has(featReconfig) {
		// RFC 6525, Section 5.1.1: "MUST include the chunk type of the RE-CONFIG
		// chunk in the Supported Extensions Parameter".
		ext = append(ext, wire.ChunkReConfig)
	}
	if f.has(featAuth) {
		ext = append(ext, wire.ChunkAuth)
	}
	if f.has(featAsconf) {
		// RFC 5061, Section 4.2.7: "MUST list the ASCONF, the ASCONF-ACK, and the
		// AUTH chunks".
		ext = append(ext, wire.ChunkAsconf, wire.ChunkAsconfAck)
	}
	if len(ext) > 0 {
		b = wire.AppendSupportedExtensions(b, ext...)
	}
	return b
}

// featuresOf returns what a list of supported extensions announces.
func featuresOf(list wire.ChunkTypes) features {
	f := featExtList
	if list.Contains(wire.ChunkForwardTSN) {
		f |= featPR
	}
	if list.Contains(wire.ChunkIData) {
		f |= featIData
	}
	if list.Contains(wire.ChunkIForwardTSN) {
		f |= featIForward
	}
	if list.Contains(wire.ChunkReConfig) {
		f |= featReconfig
	}
	if list.Contains(wire.ChunkAsconf) && list.Contains(wire.ChunkAsconfAck) {
		f |= featAsconf
	}
	return f
}

// featureOf returns the feature that a parameter of INIT announces, if the peer can
// do without: RFC 3758, Section 3.3.3, has it told that it must.
func featureOf(p wire.Param) features {
	if p.Type == wire.ParamForwardTSN {
		return featPR
	}
	return 0
}

// negotiate returns what is used of what both sides announced. With I-DATA,
// partial reliability takes I-FORWARD-TSN.
func negotiate(ours, theirs features) features {
	f := ours & theirs
	if !f.has(featAuth) && !ours.has(featAsconfOpen) {
		f &^= featAsconf
	}
	if f.has(featIData) && !f.has(featIForward) {
		f &^= featPR
	}
	return f
}

// Extensions are the features that both ends announced.
type Extensions struct {
	PartialReliability, Interleaving, Reconfig, Authentication, AddressChange, ECN, ZeroChecksum bool
}
