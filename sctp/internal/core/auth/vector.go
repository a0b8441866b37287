// Package auth authenticates chunks (RFC 4895): the keys of an association, the key vectors that
// both ends exchange, and the HMACs of AUTH chunks. A [State] belongs to one association.
package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	gohash "hash"
	"slices"

	"github.com/weftstack/weft/sctp/wire"
)

// Limits of chunk authentication.
const (
	// MaxKeys is how many shared keys an association can have, MaxSecret
	// how long one can be.
	MaxKeys   = 64
	MaxSecret = 1024
	// maxHMACs is how many HMAC identifiers are taken from an HMAC-ALGO
	// parameter; a longer list is refused.
	maxHMACs = 16
	// RandomLen is the length of RANDOM: RFC 4895, Section 6.1, "MUST
	// contain a 32-byte Random Number".
	RandomLen = 32
	// MaxVector is the length of the longest key vector.
	MaxVector = 4 + RandomLen + 4 + 256 + 4 + 2*maxHMACs
)

// Key is an endpoint pair shared key (RFC 4895, Section 6.1).
type Key struct {
	ID     uint16
	Secret []byte
}

// Config asks for chunk authentication (RFC 4895).
type Config struct {
	// Chunks are the types that are accepted only authenticated. INIT, INIT ACK,
	// SHUTDOWN COMPLETE and AUTH cannot be among them.
	Chunks []wire.ChunkType
	// HMACs are the algorithms that the peer may use, the preferred one first.
	// HMAC-SHA-1 is always among them: the RFC demands it. The default prefers
	// HMAC-SHA-256.
	HMACs []uint16
	// Keys are the shared keys. Without any there is the empty key 0.
	Keys []Key
	// Active is the ID of the key to send with.
	Active uint16
}

// Check returns what of c cannot be used; nil if all can.
func (c *Config) Check() error {
	for _, t := range c.Chunks {
		if !authable(t) {
			return fmt.Errorf("chunks of type %d cannot be authenticated", t) // RFC 4895, Section 3.2
		}
	}
	for _, id := range c.HMACs {
		if hashLen(id) == 0 {
			return fmt.Errorf("HMAC %d is none of 1 (SHA-1) and 3 (SHA-256)", id)
		}
	}
	if len(c.Keys) > MaxKeys {
		return fmt.Errorf("%d shared keys: at most %d", len(c.Keys), MaxKeys)
	}
	active := len(c.Keys) == 0 && c.Active == 0
	for i, k := range c.Keys {
		if len(k.Secret) > MaxSecret {
			return fmt.Errorf("shared key %d has %d bytes: at most %d", k.ID, len(k.Secret), MaxSecret)
		}
		if slices.ContainsFunc(c.Keys[:i], func(other Key) bool { return other.ID == k.ID }) {
			return fmt.Errorf("two shared keys %d", k.ID)
		}
		active = active || k.ID == c.Active
	}
	if !active {
		return fmt.Errorf("the active shared key %d is not among the keys", c.Active)
	}
	return nil
}

// WithDefaults returns what c means, in a form that never changes for it: the
// parameters of INIT and INIT ACK derive from it.
func (c *Config) WithDefaults(also ...wire.ChunkType) *Config {
	d := &Config{}
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

// ChunkSet is a set of chunk types.
type ChunkSet [4]uint64

func (s *ChunkSet) add(t wire.ChunkType)      { s[t>>6] |= 1 << (t & 63) }
func (s *ChunkSet) Has(t wire.ChunkType) bool { return s[t>>6]>>(t&63)&1 != 0 }
func (s *ChunkSet) Empty() bool               { return *s == ChunkSet{} }

// Vector is a key vector (RFC 4895, Section 6.1): the RANDOM, CHUNKS and
// HMAC-ALGO parameters that an end sent, in this order, without padding.
type Vector []byte

// param returns the value of a parameter of v.
func (v Vector) param(t wire.ParamType) []byte {
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
func (v Vector) hmac() uint16 {
	for l := v.param(wire.ParamHMACAlgo); len(l) >= 2; l = l[2:] {
		if id := binary.BigEndian.Uint16(l); hashLen(id) > 0 {
			return id
		}
	}
	return 0
}

// Chunks returns the set that v lists.
func (v Vector) Chunks() (s ChunkSet) {
	for _, t := range v.param(wire.ParamChunkList) {
		if authable(wire.ChunkType(t)) {
			s.add(wire.ChunkType(t))
		}
	}
	return s
}

// AppendParams appends the parameters of v as they go into an INIT, padded.
func (v Vector) AppendParams(b []byte) []byte {
	for len(v) >= wire.ParamHeaderLen {
		n := int(binary.BigEndian.Uint16(v[2:]))
		b = append(b, v[:n]...)
		b = wire.AppendPadding(b, n)
		v = v[n:]
	}
	return b
}

// NewVector returns our own key vector.
func NewVector(random [RandomLen]byte, c *Config) Vector {
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
func (v Vector) less(u Vector) bool {
	a, b := bytes.TrimLeft(v, "\x00"), bytes.TrimLeft(u, "\x00")
	switch {
	case len(a) != len(b):
		return len(a) < len(b)
	case !bytes.Equal(a, b):
		return bytes.Compare(a, b) < 0
	}
	return len(v) < len(u)
}

// Params are the parameters for authentication of an INIT or INIT ACK in
// the hands of cookie.Init. They alias the packet.
type Params struct {
	random, chunks, hmacs wire.Param
	// Problem is what the ABORT says if they are unacceptable.
	Problem string
}

// Take notes parameter p, which is one of the three.
func (x *Params) Take(p wire.Param) {
	at, limit := &x.random, RandomLen
	switch p.Type {
	case wire.ParamChunkList:
		at, limit = &x.chunks, 256
	case wire.ParamHMACAlgo:
		at, limit = &x.hmacs, 2*maxHMACs
	}
	switch {
	case at.Raw != nil:
		x.Problem = "parameter for authentication repeated" // "MUST be included once"
	case len(p.Value) > limit, p.Type == wire.ParamRandom && len(p.Value) != RandomLen,
		p.Type == wire.ParamHMACAlgo && len(p.Value)%2 != 0:
		// RFC 4895, Section 6.1: "If the Random Number is not 32 bytes, the
		// association MUST be aborted."
		x.Problem = "parameter for authentication of a wrong length"
	}
	*at = p
}

// Vector returns the key vector, nil if the peer does not authenticate or not
// by an algorithm that we know.
func (x *Params) Vector() Vector {
	if x.random.Raw == nil || x.hmacs.Raw == nil || x.Problem != "" {
		return nil
	}
	v := Vector(slices.Concat(x.random.Raw, x.chunks.Raw, x.hmacs.Raw))
	if v.hmac() == 0 {
		return nil
	}
	return v
}
