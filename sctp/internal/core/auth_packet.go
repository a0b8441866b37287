package core

import (
	"crypto/hmac"
	"encoding/binary"

	"github.com/weftstack/weft/sctp/wire"
)

// authDue reports whether the packet to be built for path i has to carry an AUTH
// chunk: it may have chunks that the peer wants authenticated.
func (a *Assoc) authDue(i int) bool {
	m := &a.auth
	if !m.on || m.must.empty() {
		return false
	}
	return m.always || a.hs.sendAck && m.must.has(wire.ChunkCookieAck) || a.ctl.wants(i, &m.must) ||
		a.asconfDue(i) && m.must.has(wire.ChunkAsconf)
}

// wants reports whether a reply for path i is of a type in s.
func (q *controlQueue) wants(i int, s *chunkSet) bool {
	for k := range q.n {
		if r := &q.list[k]; r.path == i && s.has(wire.ChunkType(r.chunk[0])) {
			return true
		}
	}
	return false
}

// begin appends an AUTH chunk whose HMAC is zero. All chunks behind it are
// authenticated once finish is called (RFC 4895, Section 6.2).
func (m *authState) begin(b []byte) []byte { return m.beginKey(b, m.active) }

// beginKey is begin with a key by its place.
func (m *authState) beginKey(b []byte, k int) []byte {
	n := m.chunkLen()
	b = append(b, uint8(wire.ChunkAuth), 0, uint8(n>>8), uint8(n))
	b = binary.BigEndian.AppendUint16(b, m.keys[k].ID)
	b = binary.BigEndian.AppendUint16(b, m.hmac)
	return append(b, m.zero[:n-wire.AuthHeaderLen]...)
}

// finish fills in the HMAC of the AUTH chunk that b begins with; b runs to the
// end of the packet.
func (m *authState) finish(b []byte) { m.finishKey(b, m.active) }

// finishKey is finish with a key by its place.
func (m *authState) finishKey(b []byte, k int) {
	h := m.mac(&m.keys[k], m.hmac)
	h.Write(b)
	m.sum = h.Sum(m.sum[:0])
	copy(b[wire.AuthHeaderLen:], m.sum)
}

// checkAuth reports whether the AUTH chunk c of a packet with our tag
// authenticates rest, which is all that follows it (RFC 4895, Section 6.3).
// Nothing is told to the peer but that we do not know the algorithm.
func (a *Assoc) checkAuth(c wire.Chunk, rest []byte) bool {
	m := &a.auth
	x, err := wire.ParseAuth(c)
	if !m.on || err != nil {
		return false
	}
	known := false
	for l := m.mine.param(wire.ParamHMACAlgo); len(l) >= 2; l = l[2:] {
		known = known || binary.BigEndian.Uint16(l) == x.HMACID
	}
	if !known {
		a.ctl.reply(a.dataPath(), wire.ChunkError, 0, wire.AppendUnsupportedHMAC(nil, x.HMACID))
		return false
	}
	// "If no endpoint pair shared key has been configured for that Shared Key
	// Identifier, all authenticated chunks MUST be silently discarded."
	k := m.index(x.KeyID)
	if k < 0 || len(x.HMAC) != hashLen(x.HMACID) {
		return false
	}
	h := m.mac(&m.keys[k], x.HMACID)
	h.Write(c.Raw[:wire.AuthHeaderLen])
	h.Write(m.zero[:len(x.HMAC)])
	h.Write(rest)
	m.sum = h.Sum(m.sum[:0])
	if !hmac.Equal(m.sum, x.HMAC) {
		return false
	}
	if !m.hasHeard || m.heard != x.KeyID {
		if m.hasHeard || x.KeyID != m.keys[m.active].ID {
			a.events.push(Event{Kind: EventAuthKey, Key: x.KeyID})
		}
		m.heard, m.hasHeard = x.KeyID, true
	}
	return true
}

// authFirst checks the AUTH chunk that a packet begins with and moves it to the
// next chunk. A packet with a foreign tag is only looked at if it may be for us
// all the same (RFC 9260, Section 8.5.1).
func (a *Assoc) authFirst(h wire.Header, it *wire.Chunks) bool {
	c, rest := it.Chunk(), it.Rest()
	if len(rest) == 0 {
		return false
	}
	switch wire.ChunkType(rest[0]) {
	case wire.ChunkInit, wire.ChunkInitAck, wire.ChunkAuth:
		return false
	case wire.ChunkCookieEcho:
	default:
		if h.VTag != a.tag && (a.peer.tag == 0 || h.VTag != a.peer.tag) {
			return false
		}
	}
	return a.checkAuth(c, rest) && it.Next()
}
