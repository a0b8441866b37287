package core

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

// Errors of CookieJar.open.
var (
	errCookieForged = errors.New("cookie: forged state cookie")
	errCookieStale  = errors.New("cookie: stale state cookie")
)

const (
	// cookieMAC is how much of the HMAC-SHA256 goes with a cookie: 128 bits, as
	// RFC 4868, Section 2.6, has it for IPsec.
	cookieMAC = 16
	// cookieFixed is what every cookie has, cookieMin the least besides.
	cookieFixed = 23
	cookieMin   = cookieFixed + 1 + 6
	// cookieKeyLife is how long one key signs. RFC 9260, Section 5.1.3: "The
	// secret key SHOULD be changed reasonably frequently (e.g., hourly)".
	cookieKeyLife = clock.Time(time.Hour)
	// cookieTick is the unit of times in a cookie.
	cookieTick = clock.Time(time.Millisecond)
	// maxCookie is the size of the largest cookie of ours.
	maxCookie = cookieFixed + binary.MaxVarintLen64 + 18 + 8 + 4 + 4 + 2 + address.MaxPeer*17 + auth.RandomLen + auth.MaxVector + cookieMAC
)

// Flags of a cookie: what it holds.
const (
	cookieIPv6       = 1 << iota // the INIT came from an IPv6 address
	cookieTies                   // tie-tags
	cookieOwn                    // our TSN and RANDOM; otherwise they derive from the rest
	cookieAdaptation             // the peer's adaptation indication
	cookieAddrs                  // more addresses of the peer
	cookieAuth                   // the peer's key vector
	cookieSingle                 // nothing: the peer was told of one address of ours
)

// What is computed with the key of a cookie.
const (
	macCookie byte = iota + 1
	macTSN
	macRandom
)

// cookieState is all that is needed to make an association, as it travels in a
// state cookie (RFC 9260, Section 5.1.3).
//
// An INIT ACK goes to an address that anybody may have put into the INIT. So the
// cookie is as small as it can be: what the packet with the COOKIE ECHO has in its
// common header is not in it, but under the MAC, and our first TSN and RANDOM
// derive from it.
type cookieState struct {
	created, life       clock.Time
	localPort, peerPort uint16
	localTag, peerTag   uint32
	localTie, peerTie   uint32
	localTSN, peerTSN   seq.TSN
	peerRWND            uint32
	out, in             uint16
	features            feature.Set
	adaptation          uint32
	hasAdaptation       bool
	remote              netip.AddrPort
	addrs               address.List
	// primary is the place in addrs, counted from 1, of the address that the peer
	// prefers (RFC 5061, Section 5.4); 0 if it said nothing.
	primary uint8
	// local is where the COOKIE ECHO came to, if by the same way as the INIT.
	local netip.AddrPort
	// own tells that localTSN and random are not those that derive from the
	// cookie, because they are those of an association that there is.
	own bool
	// single tells that the INIT ACK had to be too short for our addresses: the
	// peer knows the one that its INIT went to.
	single bool
	// random is our RANDOM, auth the peer's key vector, nil without
	// authentication. RFC 4895, Section 6.3: no shared key is in a cookie.
	random [auth.RandomLen]byte
	auth   auth.Vector
}

// fromPeer fills in what the peer's INIT says. ours is what we announce.
func (s *cookieState) fromPeer(in *initInfo, remote netip.AddrPort, ours feature.Set) {
	s.peerTag, s.peerTSN, s.peerRWND = in.tag, in.tsn, in.rwnd
	s.features = feature.Negotiate(ours, in.features)
	s.adaptation, s.hasAdaptation = in.adaptation, in.hasAdaptation
	s.remote, s.addrs = remote, in.addrs
	for i, ip := range s.addrs.All() {
		if ip == in.primary {
			s.primary = uint8(i + 1)
		}
	}
	if s.features.Has(feature.Auth) {
		s.auth = in.auth.Vector()
	}
}

// preferred returns the address that the peer would have us send to.
func (s *cookieState) preferred() netip.Addr {
	if n := int(s.primary); n > 0 && n <= len(s.addrs.All()) {
		return s.addrs.All()[n-1]
	}
	return netip.Addr{}
}

// CookieJar signs and checks state cookies. It is immutable, so any number of
// associations and goroutines can share one. The key changes every hour: it
// derives from the secret and from the hour in which the cookie was made.
type CookieJar struct{ secret [32]byte }

// NewCookieJar returns a jar whose keys derive from secret, which must come
// from a cryptographic source.
func NewCookieJar(secret [32]byte) *CookieJar { return &CookieJar{secret: secret} }

// mac returns the HMAC-SHA256, for the given purpose, of s's ports and tag and of
// msg, under the key of the hour in which s was made.
func (j *CookieJar) mac(s *cookieState, purpose byte, msg []byte) (sum [sha256.Size]byte) {
	var in [9]byte
	be := binary.BigEndian
	be.PutUint64(in[:], uint64(s.created/cookieKeyLife))
	kdf := hmac.New(sha256.New, j.secret[:])
	kdf.Write(in[:8])
	h := hmac.New(sha256.New, kdf.Sum(sum[:0]))
	in[0] = purpose
	be.PutUint16(in[1:], s.localPort)
	be.PutUint16(in[3:], s.peerPort)
	be.PutUint32(in[5:], s.localTag)
	h.Write(in[:])
	h.Write(msg)
	h.Sum(sum[:0])
	return sum
}

// derive sets our first TSN and, with authentication, our RANDOM to what nobody
// can foresee, and open can tell again.
func (j *CookieJar) derive(s *cookieState) {
	s.own = false
	var id [24]byte
	be := binary.BigEndian
	be.PutUint32(id[:], uint32(s.created/cookieTick))
	be.PutUint32(id[4:], s.peerTag)
	ip := s.remote.Addr().As16()
	copy(id[8:], ip[:])
	tsn := j.mac(s, macTSN, id[:])
	s.localTSN, s.random = seq.TSN(be.Uint32(tsn[:])), [auth.RandomLen]byte{}
	if s.auth != nil {
		s.random = j.mac(s, macRandom, id[:])
	}
}

// seal appends the signed encoding of s to b.
func (j *CookieJar) seal(b []byte, s *cookieState) []byte {
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
	b = be.AppendUint32(b, uint32(s.created/cookieTick))
	b = be.AppendUint16(b, uint16(s.features))
	b = be.AppendUint32(be.AppendUint32(be.AppendUint32(b, s.peerTag), uint32(s.peerTSN)), s.peerRWND)
	b = be.AppendUint16(be.AppendUint16(b, s.out), s.in)
	b = binary.AppendUvarint(b, uint64(s.life/cookieTick))
	ip := s.remote.Addr()
	if !ip.IsValid() {
		ip = netip.IPv4Unspecified()
	}
	set(ip.Is6(), cookieIPv6)
	b = append(b, ip.AsSlice()...)
	b = be.AppendUint16(b, s.remote.Port())
	if set(s.localTie|s.peerTie != 0, cookieTies) {
		b = be.AppendUint32(be.AppendUint32(b, s.localTie), s.peerTie)
	}
	set(s.auth != nil, cookieAuth)
	if set(s.own, cookieOwn) {
		b = be.AppendUint32(b, uint32(s.localTSN))
		if s.auth != nil {
			b = append(b, s.random[:]...)
		}
	}
	if set(s.hasAdaptation, cookieAdaptation) {
		b = be.AppendUint32(b, s.adaptation)
	}
	if set(len(s.addrs.All()) > 0, cookieAddrs) {
		b = append(b, byte(len(s.addrs.All())), s.primary)
		for _, a := range s.addrs.All() {
			b = appendIP(b, a)
		}
	}
	b = append(b, s.auth...)
	set(s.single, cookieSingle)
	b[at] = flags
	sum := j.mac(s, macCookie, b[at:])
	return append(b, sum[:cookieMAC]...)
}

// open checks the signature of the cookie c that came in a packet with header h
// from remote to local, and only then looks into it. With errCookieStale s is filled in.
//
// RFC 9260, Section 5.1.5: the MAC is computed before anything is believed. It
// covers the tag and the ports, so they are right too (step 3).
func (j *CookieJar) open(s *cookieState, h wire.Header, remote, local netip.AddrPort, c []byte, now clock.Time) error {
	if len(c) < cookieMin+cookieMAC || len(c) > maxCookie {
		return errCookieForged
	}
	be := binary.BigEndian
	body, sum := c[:len(c)-cookieMAC], c[len(c)-cookieMAC:]
	// The time is cut to 32 bits. One that is taken for another is of another key.
	ticks := now / cookieTick
	*s = cookieState{created: (ticks - clock.Time(uint32(ticks)-be.Uint32(body[1:]))) * cookieTick,
		localPort: h.DstPort, peerPort: h.SrcPort, localTag: h.VTag}
	if s.created < 0 {
		return errCookieForged
	}
	if want := j.mac(s, macCookie, body); !hmac.Equal(sum, want[:cookieMAC]) {
		return errCookieForged
	}
	s.features = feature.Set(be.Uint16(body[5:]))
	s.peerTag, s.peerTSN, s.peerRWND = be.Uint32(body[7:]), seq.TSN(be.Uint32(body[11:])), be.Uint32(body[15:])
	s.out, s.in = be.Uint16(body[19:]), be.Uint16(body[21:])
	s.unpack(body[0], body[cookieFixed:])
	if !s.own {
		j.derive(s)
	}
	if r := address.Unmap(remote); r.Addr().WithZone("") == s.remote.Addr() {
		s.remote, s.local = netip.AddrPortFrom(r.Addr(), s.remote.Port()), local
	}
	if s.staleness(now) > 0 {
		return errCookieStale
	}
	return nil
}

// unpack takes in what follows the fixed part of a cookie with these flags. We
// made it, so it is well-formed.
func (s *cookieState) unpack(flags byte, b []byte) {
	be := binary.BigEndian
	cut := func(n int) []byte {
		x := b[:n]
		b = b[n:]
		return x
	}
	life, n := binary.Uvarint(b)
	s.life = clock.Time(life) * cookieTick
	cut(n)
	n = 4
	if flags&cookieIPv6 != 0 {
		n = 16
	}
	ip, _ := netip.AddrFromSlice(cut(n))
	s.remote = netip.AddrPortFrom(ip, be.Uint16(cut(2)))
	if flags&cookieTies != 0 {
		s.localTie, s.peerTie = be.Uint32(cut(4)), be.Uint32(cut(4))
	}
	if s.own = flags&cookieOwn != 0; s.own {
		s.localTSN = seq.TSN(be.Uint32(cut(4)))
		if flags&cookieAuth != 0 {
			s.random = [auth.RandomLen]byte(cut(auth.RandomLen))
		}
	}
	if s.hasAdaptation = flags&cookieAdaptation != 0; s.hasAdaptation {
		s.adaptation = be.Uint32(cut(4))
	}
	if flags&cookieAddrs != 0 {
		head := cut(2)
		s.primary = head[1]
		for range head[0] {
			ip, _ := netip.AddrFromSlice(cut(int(cut(1)[0])))
			s.addrs.Add(ip)
		}
	}
	if flags&cookieAuth != 0 {
		s.auth = auth.Vector(b)
	}
	s.single = flags&cookieSingle != 0
}

// staleness returns for how long the cookie has been too old, or 0.
func (s *cookieState) staleness(now clock.Time) clock.Time { return max(0, now-s.created-s.life) }

// appendIP appends a as its length and bytes.
func appendIP(b []byte, a netip.Addr) []byte {
	x := a.Unmap().AsSlice()
	return append(append(b, byte(len(x))), x...)
}
