package core

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	gohash "hash"
	"slices"

	"github.com/weftstack/weft/sctp/wire"
)

// Limits of chunk authentication.
const (
	// MaxAuthKeys is how many shared keys an association can have, MaxAuthSecret
	// how long one can be.
	MaxAuthKeys   = 64
	MaxAuthSecret = 1024
	// maxAuthHMACs is how many HMAC identifiers are taken from an HMAC-ALGO
	// parameter; a longer list is refused.
	maxAuthHMACs = 16
	// authRandomLen is the length of RANDOM: RFC 4895, Section 6.1, "MUST
	// contain a 32-byte Random Number".
	authRandomLen = 32
	// maxAuthVector is the length of the longest key vector.
	maxAuthVector = 4 + authRandomLen + 4 + 256 + 4 + 2*maxAuthHMACs
)

// AuthKey is an endpoint pair shared key (RFC 4895, Section 6.1).
type AuthKey struct {
	ID     uint16
	Secret []byte
}

// AuthConfig asks for chunk authentication (RFC 4895).
type AuthConfig struct {
	// Chunks are the types that are accepted only authenticated. INIT, INIT ACK,
	// SHUTDOWN COMPLETE and AUTH cannot be among them.
	Chunks []wire.ChunkType
	// HMACs are the algorithms that the peer may use, the preferred one first.
	// HMAC-SHA-1 is always among them: the RFC demands it. The default prefers
	// HMAC-SHA-256.
	HMACs []uint16
	// Keys are the shared keys. Without any there is the empty key 0.
	Keys []AuthKey
	// Active is the ID of the key to send with.
	Active uint16
}

// withDefaults returns what c means, in a form that never changes for it: the
// parameters of INIT and INIT ACK derive from it.
func (c *AuthConfig) withDefaults(also ...wire.ChunkType) *AuthConfig {
	d := &AuthConfig{}
	if c != nil {
		*d = *c
	}
	var chunks []wire.ChunkType
	for _, t := range append(slices.Clone(d.Chunks), also...) {
		if authable(t) && !slices.Contains(chunks, t) {
			chunks = append(chunks, t)
		}
	}
	d.Chunks = chunks
	var hmacs []uint16
	for _, id := range d.HMACs {
		if hashLen(id) > 0 && !slices.Contains(hmacs, id) {
			hmacs = append(hmacs, id)
		}
	}
	if len(hmacs) == 0 {
		hmacs = append(hmacs, wire.HMACSHA256)
	}
	// RFC 4895, Section 6.1: "The HMAC algorithm based on SHA-1 MUST be
	// supported and included in the HMAC-ALGO parameter."
	if !slices.Contains(hmacs, wire.HMACSHA1) {
		hmacs = append(hmacs, wire.HMACSHA1)
	}
	d.HMACs = hmacs
	return d
}

// authable reports whether chunks of type t can be required to be authenticated
// (RFC 4895, Section 3.2).
func authable(t wire.ChunkType) bool {
	switch t {
	case wire.ChunkInit, wire.ChunkInitAck, wire.ChunkShutdownComplete, wire.ChunkAuth:
		return false
	}
	return true
}

// hashLen returns the length of the HMAC of an algorithm, 0 if it is not known.
func hashLen(id uint16) int {
	switch id {
	case wire.HMACSHA1:
		return sha1.Size
	case wire.HMACSHA256:
		return sha256.Size
	}
	return 0
}

func newMAC(id uint16, key []byte) gohash.Hash {
	if id == wire.HMACSHA1 {
		return hmac.New(sha1.New, key)
	}
	return hmac.New(sha256.New, key)
}

// chunkSet is a set of chunk types.
type chunkSet [4]uint64

func (s *chunkSet) add(t wire.ChunkType)      { s[t>>6] |= 1 << (t & 63) }
func (s *chunkSet) has(t wire.ChunkType) bool { return s[t>>6]>>(t&63)&1 != 0 }
func (s *chunkSet) empty() bool               { return *s == chunkSet{} }

// authVector is a key vector (RFC 4895, Section 6.1): the RANDOM, CHUNKS and
// HMAC-ALGO parameters that an end sent, in this order, without padding.
type authVector []byte

// param returns the value of a parameter of v.
func (v authVector) param(t wire.ParamType) []byte {
	for len(v) >= wire.ParamHeaderLen {
		n := int(binary.BigEndian.Uint16(v[2:]))
		if n < wire.ParamHeaderLen || n > len(v) {
			break
		}
		if wire.ParamType(binary.BigEndian.Uint16(v)) == t {
			return v[wire.ParamHeaderLen:n]
		}
		v = v[n:]
	}
	return nil
}

// hmac returns the first algorithm listed in v that we know: "The receiver of
// an HMAC-ALGO parameter SHOULD use the first listed algorithm it supports."
func (v authVector) hmac() uint16 {
	for l := v.param(wire.ParamHMACAlgo); len(l) >= 2; l = l[2:] {
		if id := binary.BigEndian.Uint16(l); hashLen(id) > 0 {
			return id
		}
	}
	return 0
}

// chunks returns the set that v lists.
func (v authVector) chunks() (s chunkSet) {
	for _, t := range v.param(wire.ParamChunkList) {
		if authable(wire.ChunkType(t)) {
			s.add(wire.ChunkType(t))
		}
	}
	return s
}

// appendParams appends the parameters of v as they go into an INIT, padded.
func (v authVector) appendParams(b []byte) []byte {
	for len(v) >= wire.ParamHeaderLen {
		n := int(binary.BigEndian.Uint16(v[2:]))
		b = append(b, v[:n]...)
		b = wire.AppendPadding(b, n)
		v = v[n:]
	}
	return b
}

// newAuthVector returns our own key vector.
func newAuthVector(random [authRandomLen]byte, c *AuthConfig) authVector {
	trim := func(b []byte, at int) []byte { return b[:at+int(binary.BigEndian.Uint16(b[at+2:]))] }
	b := wire.AppendRandom(nil, random[:])
	// "The CHUNKS parameter … MAY be omitted if it is empty".
	if at := len(b); len(c.Chunks) > 0 {
		b = trim(wire.AppendChunkList(b, c.Chunks...), at)
	}
	at := len(b)
	return trim(wire.AppendHMACAlgo(b, c.HMACs...), at)
}

// less reports whether vector v is to be concatenated before u: it is the
// smaller number in network byte order or, if they are equal, the shorter one.
func (v authVector) less(u authVector) bool {
	a, b := bytes.TrimLeft(v, "\x00"), bytes.TrimLeft(u, "\x00")
	switch {
	case len(a) != len(b):
		return len(a) < len(b)
	case !bytes.Equal(a, b):
		return bytes.Compare(a, b) < 0
	}
	return len(v) < len(u)
}

// authParams are the parameters for authentication of an INIT or INIT ACK in
// the hands of initInfo. They alias the packet.
type authParams struct {
	random, chunks, hmacs wire.Param
	// problem is what the ABORT says if they are unacceptable.
	problem string
}

// take notes parameter p, which is one of the three.
func (x *authParams) take(p wire.Param) {
	at, limit := &x.random, authRandomLen
	switch p.Type {
	case wire.ParamChunkList:
		at, limit = &x.chunks, 256
	case wire.ParamHMACAlgo:
		at, limit = &x.hmacs, 2*maxAuthHMACs
	}
	switch {
	case at.Raw != nil:
		x.problem = "parameter for authentication repeated" // "MUST be included once"
	case len(p.Value) > limit, p.Type == wire.ParamRandom && len(p.Value) != authRandomLen,
		p.Type == wire.ParamHMACAlgo && len(p.Value)%2 != 0:
		// RFC 4895, Section 6.1: "If the Random Number is not 32 bytes, the
		// association MUST be aborted."
		x.problem = "parameter for authentication of a wrong length"
	}
	*at = p
}

// vector returns the key vector, nil if the peer does not authenticate or not
// by an algorithm that we know.
func (x *authParams) vector() authVector {
	if x.random.Raw == nil || x.hmacs.Raw == nil || x.problem != "" {
		return nil
	}
	v := authVector(slices.Concat(x.random.Raw, x.chunks.Raw, x.hmacs.Raw))
	if v.hmac() == 0 {
		return nil
	}
	return v
}
