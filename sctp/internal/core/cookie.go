package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"
)

// Errors of CookieJar.open.
var (
	errCookieForged = errors.New("core: forged state cookie")
	errCookieStale  = errors.New("core: stale state cookie")
)

const (
	cookieVersion = 1
	cookieMAC     = sha256.Size
	cookieFixed   = 64
	// cookieKeyLife is how long one key signs. RFC 9260, Section 5.1.3: "The
	// secret key SHOULD be changed reasonably frequently (e.g., hourly)".
	cookieKeyLife = Time(time.Hour)
	// maxCookie is the size of the largest cookie of ours.
	maxCookie = cookieFixed + 2*19 + MaxPeerAddrs*17 + authRandomLen + 2 + maxAuthVector + cookieMAC
)

// cookieState is all that is needed to make an association, as it travels in a
// state cookie (RFC 9260, Section 5.1.3).
type cookieState struct {
	created, life       Time
	localPort, peerPort uint16
	localTag, peerTag   uint32
	localTie, peerTie   uint32
	localTSN, peerTSN   TSN
	peerRWND            uint32
	out, in             uint16
	features            features
	adaptation          uint32
	hasAdaptation       bool
	local, remote       netip.AddrPort
	addrs               addrList
	// primary is the place in addrs, counted from 1, of the address that the peer
	// prefers (RFC 5061, Section 5.4); 0 if it said nothing.
	primary uint8
	// random is our RANDOM, auth the peer's key vector, nil without
	// authentication. RFC 4895, Section 6.3: no shared key is in a cookie.
	random [authRandomLen]byte
	auth   authVector
}

// preferred returns the address that the peer would have us send to.
func (s *cookieState) preferred() netip.Addr {
	if n := int(s.primary); n > 0 && n <= s.addrs.n {
		return s.addrs.list[n-1]
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

// mac appends the HMAC-SHA256 of msg under the key of the given time.
func (j *CookieJar) mac(b, msg []byte, created Time) []byte {
	var epoch [8]byte
	binary.BigEndian.PutUint64(epoch[:], uint64(created/cookieKeyLife))
	kdf := hmac.New(sha256.New, j.secret[:])
	kdf.Write(epoch[:])
	h := hmac.New(sha256.New, kdf.Sum(nil))
	h.Write(msg)
	return h.Sum(b)
}

// seal appends the signed encoding of s to b.
func (j *CookieJar) seal(b []byte, s *cookieState) []byte {
	at := len(b)
	be := binary.BigEndian
	flags := byte(0)
	if s.hasAdaptation {
		flags = 1
	}
	if s.auth != nil {
		flags |= 2
	}
	b = append(b, cookieVersion, flags, byte(s.addrs.n), s.primary)
	b = be.AppendUint64(b, uint64(s.created))
	b = be.AppendUint64(b, uint64(s.life))
	b = be.AppendUint16(be.AppendUint16(b, s.localPort), s.peerPort)
	for _, v := range [...]uint32{s.localTag, s.peerTag, s.localTie, s.peerTie, uint32(s.localTSN),
		uint32(s.peerTSN), s.peerRWND, s.adaptation} {
		b = be.AppendUint32(b, v)
	}
	b = be.AppendUint16(be.AppendUint16(b, s.out), s.in)
	b = be.AppendUint16(b, uint16(s.features))
	b = append(b, 0, 0)
	b = appendAddrPort(appendAddrPort(b, s.local), s.remote)
	for _, a := range s.addrs.list[:s.addrs.n] {
		b = appendIP(b, a)
	}
	if s.auth != nil {
		b = append(b, s.random[:]...)
		b = be.AppendUint16(b, uint16(len(s.auth)))
		b = append(b, s.auth...)
	}
	return j.mac(b, b[at:], s.created)
}

// open checks the signature of a cookie, and only then looks into it. With
// errCookieStale s is filled in.
//
// RFC 9260, Section 5.1.5: the MAC is computed before anything is believed.
func (j *CookieJar) open(s *cookieState, c []byte, now Time) error {
	if len(c) < cookieFixed+cookieMAC || len(c) > maxCookie || c[0] != cookieVersion {
		return errCookieForged
	}
	be := binary.BigEndian
	body, sum := c[:len(c)-cookieMAC], c[len(c)-cookieMAC:]
	created := Time(be.Uint64(body[4:]))
	if created <= 0 || created > now {
		return errCookieForged
	}
	var want [cookieMAC]byte
	if !hmac.Equal(sum, j.mac(want[:0], body, created)) {
		return errCookieForged
	}
	*s = cookieState{created: created, life: Time(be.Uint64(body[12:])),
		localPort: be.Uint16(body[20:]), peerPort: be.Uint16(body[22:]),
		localTag: be.Uint32(body[24:]), peerTag: be.Uint32(body[28:]),
		localTie: be.Uint32(body[32:]), peerTie: be.Uint32(body[36:]),
		localTSN: TSN(be.Uint32(body[40:])), peerTSN: TSN(be.Uint32(body[44:])),
		peerRWND: be.Uint32(body[48:]), adaptation: be.Uint32(body[52:]),
		out: be.Uint16(body[56:]), in: be.Uint16(body[58:]), features: features(be.Uint16(body[60:])),
		hasAdaptation: body[1]&1 != 0, primary: body[3],
	}
	n, rest := int(body[2]), body[64:]
	var ok bool
	if s.local, rest, ok = cutAddrPort(rest); !ok {
		return errCookieForged
	}
	if s.remote, rest, ok = cutAddrPort(rest); !ok {
		return errCookieForged
	}
	for range n {
		var a netip.Addr
		if a, rest, ok = cutIP(rest); !ok {
			return errCookieForged
		}
		s.addrs.add(a)
	}
	if body[1]&2 != 0 {
		if len(rest) < authRandomLen+2 || len(rest)-authRandomLen-2 != int(be.Uint16(rest[authRandomLen:])) {
			return errCookieForged
		}
		s.random = [authRandomLen]byte(rest)
		s.auth = authVector(rest[authRandomLen+2:])
	}
	if s.staleness(now) > 0 {
		return errCookieStale
	}
	return nil
}

// staleness returns for how long the cookie has been too old, or 0.
func (s *cookieState) staleness(now Time) Time { return max(0, now-s.created-s.life) }

// appendIP appends a as its length and bytes.
func appendIP(b []byte, a netip.Addr) []byte {
	a = a.Unmap()
	switch {
	case a.Is4():
		x := a.As4()
		return append(append(b, 4), x[:]...)
	case a.IsValid():
		x := a.As16()
		return append(append(b, 16), x[:]...)
	}
	return append(b, 0)
}

func cutIP(b []byte) (netip.Addr, []byte, bool) {
	if len(b) == 0 || len(b)-1 < int(b[0]) {
		return netip.Addr{}, nil, false
	}
	n := int(b[0])
	a, _ := netip.AddrFromSlice(b[1 : 1+n])
	return a, b[1+n:], n == 0 || n == 4 || n == 16
}

func appendAddrPort(b []byte, a netip.AddrPort) []byte {
	return binary.BigEndian.AppendUint16(appendIP(b, a.Addr()), a.Port())
}

func cutAddrPort(b []byte) (netip.AddrPort, []byte, bool) {
	a, b, ok := cutIP(b)
	if !ok || len(b) < 2 {
		return netip.AddrPort{}, nil, false
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(b)), b[2:], true
}
