package auth

import (
	"crypto/hmac"
	"encoding/binary"

	"github.com/weftstack/weft/sctp/wire"
)

// Begin appends an AUTH chunk whose HMAC is zero. All chunks behind it are
// authenticated once finish is called (RFC 4895, Section 6.2).
func (m *State) Begin(b []byte) []byte { return m.BeginKey(b, m.active) }

// BeginKey is begin with a key by its place.
func (m *State) BeginKey(b []byte, k int) []byte {
	n := m.ChunkLen()
	b = append(b, uint8(wire.ChunkAuth), 0, uint8(n>>8), uint8(n))
	b = binary.BigEndian.AppendUint16(b, m.keys[k].ID)
	b = binary.BigEndian.AppendUint16(b, m.HMAC)
	return append(b, m.zero[:n-wire.AuthHeaderLen]...)
}

// Finish fills in the HMAC of the AUTH chunk that b begins with; b runs to the
// end of the packet.
func (m *State) Finish(b []byte) { m.FinishKey(b, m.active) }

// FinishKey is finish with a key by its place.
func (m *State) FinishKey(b []byte, k int) {
	h := m.mac(&m.keys[k], m.HMAC)
	h.Write(b)
	m.sum = h.Sum(m.sum[:0])
	copy(b[wire.AuthHeaderLen:], m.sum)
}

// Accepts reports whether the peer may use an algorithm: it is in our HMAC-ALGO.
func (m *State) Accepts(hmacID uint16) bool {
	for l := m.Mine.param(wire.ParamHMACAlgo); len(l) >= 2; l = l[2:] {
		if binary.BigEndian.Uint16(l) == hmacID {
			return true
		}
	}
	return false
}

// Verify reports whether the AUTH chunk x, of which header is all but the HMAC,
// authenticates rest (RFC 4895, Section 6.3). changed tells that the peer used another
// key before.
func (m *State) Verify(x *wire.Auth, header, rest []byte) (ok, changed bool) {
	// "If no endpoint pair shared key has been configured for that Shared Key
	// Identifier, all authenticated chunks MUST be silently discarded."
	k := m.index(x.KeyID)
	if k < 0 || len(x.HMAC) != hashLen(x.HMACID) {
		return false, false
	}
	h := m.mac(&m.keys[k], x.HMACID)
	h.Write(header)
	h.Write(m.zero[:len(x.HMAC)])
	h.Write(rest)
	m.sum = h.Sum(m.sum[:0])
	if !hmac.Equal(m.sum, x.HMAC) {
		return false, false
	}
	if !m.hasHeard || m.heard != x.KeyID {
		changed = m.hasHeard || x.KeyID != m.keys[m.active].ID
		m.heard, m.hasHeard = x.KeyID, true
	}
	return true, changed
}
