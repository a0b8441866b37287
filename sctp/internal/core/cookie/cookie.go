// Package cookie has the state cookie, with all that it takes to make an association,
// and what INIT and INIT ACK say (RFC 9260, Sections 3.3.2, 3.3.3 and 5.1.3).
package cookie

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// Errors of Jar.open.
var (
	ErrForged = errors.New("cookie: forged state cookie")
	ErrStale  = errors.New("cookie: stale state cookie")
)

const (
	// macLen is how much of the HMAC-SHA256 goes with a cookie: 128 bits, as
	// RFC 4868, Section 2.6, has it for IPsec.
	macLen = 16
	// fixedLen is what every cookie has, minLen the least besides.
	fixedLen = 23
	minLen   = fixedLen + 1 + 6
	// keyLife is how long one key signs. RFC 9260, Section 5.1.3: "The
	// secret key SHOULD be changed reasonably frequently (e.g., hourly)".
	keyLife = clock.Time(time.Hour)
	// tick is the unit of times in a cookie.
	tick = clock.Time(time.Millisecond)
	// MaxLen is the size of the largest cookie of ours.
	MaxLen = fixedLen + binary.MaxVarintLen64 + 18 + 8 + 4 + 4 + 2 + address.MaxPeer*17 + auth.RandomLen +
		auth.MaxVector + macLen
)

// Flags of a cookie: what it holds.
const (
	flagIPv6       = 1 << iota // the INIT came from an IPv6 address
	flagTies                   // tie-tags
	flagOwn                    // our TSN and RANDOM; otherwise they derive from the rest
	flagAdaptation             // the peer's adaptation indication
	flagAddrs                  // more addresses of the peer
	flagAuth                   // the peer's key vector
	flagSingle                 // nothing: the peer was told of one address of ours
)

// What is computed with the key of a cookie.
const (
	macCookie byte = iota + 1
	macTSN
	macRandom
)

// State is all that is needed to make an association, as it travels in a state
// cookie (RFC 9260, Section 5.1.3).
//
// An INIT ACK goes to an address that anybody may have put into the INIT. So the
// cookie is as small as it can be: what the packet with the COOKIE ECHO has in its
// common header is not in it, but under the MAC, and our first TSN and RANDOM
// derive from it.
type State struct {
	Created, Life       clock.Time
	LocalPort, PeerPort uint16
	LocalTag, PeerTag   uint32
	LocalTie, PeerTie   uint32
	LocalTSN, PeerTSN   seq.TSN
	PeerRWND            uint32
	Out, In             uint16
	Features            feature.Set
	Adaptation          uint32
	HasAdaptation       bool
	Remote              netip.AddrPort
	Addrs               address.List
	// Primary is the place in Addrs, counted from 1, of the address that the peer
	// prefers (RFC 5061, Section 5.4); 0 if it said nothing.
	Primary uint8
	// Local is where the COOKIE ECHO came to, if by the same way as the INIT.
	Local netip.AddrPort
	// Own tells that LocalTSN and Random are not those that derive from the
	// cookie, because they are those of an association that there is.
	Own bool
	// Single tells that the INIT ACK had to be too short for our addresses: the
	// peer knows the one that its INIT went to.
	Single bool
	// Random is our RANDOM, Auth the peer's key vector, nil without
	// authentication. RFC 4895, Section 6.3: no shared key is in a cookie.
	Random [auth.RandomLen]byte
	Auth   auth.Vector
}

// FromPeer fills in what the peer's INIT says. ours is what we announce.
func (s *State) FromPeer(in *Init, remote netip.AddrPort, ours feature.Set) {
	s.PeerTag, s.PeerTSN, s.PeerRWND = in.Tag, in.TSN, in.RWND
	s.Features = feature.Negotiate(ours, in.Features)
	s.Adaptation, s.HasAdaptation = in.Adaptation, in.HasAdaptation
	s.Remote, s.Addrs = remote, in.Addrs
	for i, ip := range s.Addrs.All() {
		if ip == in.Primary {
			s.Primary = uint8(i + 1)
		}
	}
	if s.Features.Has(feature.Auth) {
		s.Auth = in.Auth.Vector()
	}
}

// Preferred returns the address that the peer would have us send to.
func (s *State) Preferred() netip.Addr {
	if n := int(s.Primary); n > 0 && n <= len(s.Addrs.All()) {
		return s.Addrs.All()[n-1]
	}
	return netip.Addr{}
}

// Jar signs and checks state cookies. It is immutable, so any number of
// associations and goroutines can share one. The key changes every hour: it
// derives from the secret and from the hour in which the cookie was made.
type Jar struct{ secret [32]byte }

// NewJar returns a jar whose keys derive from secret, which must come
// from a cryptographic source.
func NewJar(secret [32]byte) *Jar { return &Jar{secret: secret} }

// mac returns the HMAC-SHA256, for the given purpose, of s's ports and tag and of
// msg, under the key of the hour in which s was made.
func (j *Jar) mac(s *State, purpose byte, msg []byte) (sum [sha256.Size]byte) {
	var in [9]byte
	be := binary.BigEndian
	be.PutUint64(in[:], uint64(s.Created/keyLife))
	kdf := hmac.New(sha256.New, j.secret[:])
	kdf.Write(in[:8])
	h := hmac.New(sha256.New, kdf.Sum(sum[:0]))
	in[0] = purpose
	be.PutUint16(in[1:], s.LocalPort)
	be.PutUint16(in[3:], s.PeerPort)
	be.PutUint32(in[5:], s.LocalTag)
	h.Write(in[:])
	h.Write(msg)
	h.Sum(sum[:0])
	return sum
}

// Derive sets our first TSN and, with authentication, our RANDOM to what nobody
// can foresee, and Open can tell again.
func (j *Jar) Derive(s *State) {
	s.Own = false
	var id [24]byte
	be := binary.BigEndian
	be.PutUint32(id[:], uint32(s.Created/tick))
	be.PutUint32(id[4:], s.PeerTag)
	ip := s.Remote.Addr().As16()
	copy(id[8:], ip[:])
	tsn := j.mac(s, macTSN, id[:])
	s.LocalTSN, s.Random = seq.TSN(be.Uint32(tsn[:])), [auth.RandomLen]byte{}
	if s.Auth != nil {
		s.Random = j.mac(s, macRandom, id[:])
	}
}

// Seal appends the signed encoding of s to b.
func (j *Jar) Seal(b []byte, s *State) []byte {
	at := len(b)
	be := binary.BigEndian
	flags := byte(0)
	set := func(on bool, f byte) bool {
		if on {
			flags |= f
		}
		return on
	}
	b = append(b, 0)
	b = be.AppendUint32(b, uint32(s.Created/tick))
	b = be.AppendUint16(b, uint16(s.Features))
	b = be.AppendUint32(be.AppendUint32(be.AppendUint32(b, s.PeerTag), uint32(s.PeerTSN)), s.PeerRWND)
	b = be.AppendUint16(be.AppendUint16(b, s.Out), s.In)
	b = binary.AppendUvarint(b, uint64(s.Life/tick))
	ip := s.Remote.Addr()
	if !ip.IsValid() {
		ip = netip.IPv4Unspecified()
	}
	set(ip.Is6(), flagIPv6)
	b = append(b, ip.AsSlice()...)
	b = be.AppendUint16(b, s.Remote.Port())
	if set(s.LocalTie|s.PeerTie != 0, flagTies) {
		b = be.AppendUint32(be.AppendUint32(b, s.LocalTie), s.PeerTie)
	}
	set(s.Auth != nil, flagAuth)
	if set(s.Own, flagOwn) {
		b = be.AppendUint32(b, uint32(s.LocalTSN))
		if s.Auth != nil {
			b = append(b, s.Random[:]...)
		}
	}
	if set(s.HasAdaptation, flagAdaptation) {
		b = be.AppendUint32(b, s.Adaptation)
	}
	if set(len(s.Addrs.All()) > 0, flagAddrs) {
		b = append(b, byte(len(s.Addrs.All())), s.Primary)
		for _, a := range s.Addrs.All() {
			b = appendIP(b, a)
		}
	}
	b = append(b, s.Auth...)
	set(s.Single, flagSingle)
	b[at] = flags
	sum := j.mac(s, macCookie, b[at:])
	return append(b, sum[:macLen]...)
}

// Open checks the signature of the cookie c that came in a packet with header h
// from remote to local, and only then looks into it. With ErrStale s is filled in.
//
// RFC 9260, Section 5.1.5: the MAC is computed before anything is believed. It
// covers the tag and the ports, so they are right too (step 3).
func (j *Jar) Open(s *State, h wire.Header, remote, local netip.AddrPort, c []byte, now clock.Time) error {
	if len(c) < minLen+macLen || len(c) > MaxLen {
		return ErrForged
	}
	be := binary.BigEndian
	body, sum := c[:len(c)-macLen], c[len(c)-macLen:]
	// The time is cut to 32 bits. One that is taken for another is of another key.
	ticks := now / tick
	*s = State{Created: (ticks - clock.Time(uint32(ticks)-be.Uint32(body[1:]))) * tick,
		LocalPort: h.DstPort, PeerPort: h.SrcPort, LocalTag: h.VTag}
	if s.Created < 0 {
		return ErrForged
	}
	if want := j.mac(s, macCookie, body); !hmac.Equal(sum, want[:macLen]) {
		return ErrForged
	}
	s.Features = feature.Set(be.Uint16(body[5:]))
	s.PeerTag, s.PeerTSN, s.PeerRWND = be.Uint32(body[7:]), seq.TSN(be.Uint32(body[11:])), be.Uint32(body[15:])
	s.Out, s.In = be.Uint16(body[19:]), be.Uint16(body[21:])
	s.unpack(body[0], body[fixedLen:])
	if !s.Own {
		j.Derive(s)
	}
	if r := address.Unmap(remote); r.Addr().WithZone("") == s.Remote.Addr() {
		s.Remote, s.Local = netip.AddrPortFrom(r.Addr(), s.Remote.Port()), local
	}
	if s.Staleness(now) > 0 {
		return ErrStale
	}
	return nil
}

// unpack takes in what follows the fixed part of a cookie with these flags. We
// made it, so it is well-formed.
func (s *State) unpack(flags byte, b []byte) {
	be := binary.BigEndian
	cut := func(n int) []byte {
		x := b[:n]
		b = b[n:]
		return x
	}
	life, n := binary.Uvarint(b)
	s.Life = clock.Time(life) * tick
	cut(n)
	n = 4
	if flags&flagIPv6 != 0 {
		n = 16
	}
	ip, _ := netip.AddrFromSlice(cut(n))
	s.Remote = netip.AddrPortFrom(ip, be.Uint16(cut(2)))
	if flags&flagTies != 0 {
		s.LocalTie, s.PeerTie = be.Uint32(cut(4)), be.Uint32(cut(4))
	}
	if s.Own = flags&flagOwn != 0; s.Own {
		s.LocalTSN = seq.TSN(be.Uint32(cut(4)))
		if flags&flagAuth != 0 {
			s.Random = [auth.RandomLen]byte(cut(auth.RandomLen))
		}
	}
	if s.HasAdaptation = flags&flagAdaptation != 0; s.HasAdaptation {
		s.Adaptation = be.Uint32(cut(4))
	}
	if flags&flagAddrs != 0 {
		head := cut(2)
		s.Primary = head[1]
		for range head[0] {
			ip, _ := netip.AddrFromSlice(cut(int(cut(1)[0])))
			s.Addrs.Add(ip)
		}
	}
	if flags&flagAuth != 0 {
		s.Auth = auth.Vector(b)
	}
	s.Single = flags&flagSingle != 0
}

// Staleness returns for how long the cookie has been too old, or 0.
func (s *State) Staleness(now clock.Time) clock.Time { return max(0, now-s.Created-s.Life) }

// appendIP appends a as its length and bytes.
func appendIP(b []byte, a netip.Addr) []byte {
	x := a.Unmap().AsSlice()
	return append(append(b, byte(len(x))), x...)
}
