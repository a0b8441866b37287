package core

import (
	"net/netip"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/wire"
)

// ListenerParams are what a Listener needs to know of its surroundings.
type ListenerParams struct {
	// Port is the SCTP port.
	Port uint16
	// Local are the UDP addresses of this host's sockets.
	Local []netip.AddrPort
	// Seed makes everything random about the listener.
	Seed [32]byte
	// Cookies signs the state cookies.
	Cookies *cookie.Jar
	// TagInUse, if not nil, reports whether an association of the caller has
	// this local tag already.
	TagInUse func(tag uint32) bool
	// TagRetired, if not nil, reports whether an association of the caller that is
	// gone had this local tag less than Config.MaxCookieLife ago.
	TagRetired func(tag uint32) bool
	// New, if not nil, returns the memory of a new association, which must be all
	// zero. Its caller may have made it part of something larger.
	New func() *Assoc
	// Find, if not nil, returns the local tag of the association with the
	// given confirmed peer address and SCTP ports.
	Find func(remote netip.AddrPort, localPort, peerPort uint16) (tag uint32, ok bool)
}

// Listener handles the packets to an SCTP port that belong to no association
// known to the caller. It keeps nothing about a peer: what an INIT says travels
// in the signed state cookie (RFC 9260, Section 5.1, B).
type Listener struct {
	cfg    Config
	shared *Config // the caller's, for new associations
	p      ListenerParams
	rng    random
}

// NewListener returns a Listener. cfg may be nil.
func NewListener(cfg *Config, p ListenerParams) *Listener {
	p.Local = slices.Clone(p.Local)
	l := &Listener{cfg: cfg.withDefaults(), shared: cfg, p: p, rng: newRandom(p.Seed)}
	if l.p.Cookies == nil {
		l.p.Cookies = cookie.NewJar(l.rng.seed())
	}
	return l
}

// Result is the outcome of a packet that belongs to no association known to
// the caller.
type Result struct {
	Answer
	// New is the association that the packet created, already established. The
	// caller polls it as after any packet.
	New *Assoc
	// ForTag, if not 0, is the local tag of the existing association that the
	// packet belongs to by one of the addresses listed in it (RFC 9260,
	// Section 5.1.2, D). The caller hands the packet to that association.
	ForTag uint32
}

func dropped(why DropReason) Result { return Result{Answer: Answer{Drop: why}} }

func replied(packet []byte) Result { return Result{Answer: Answer{Reply: packet}} }

// HandlePacket handles a packet that belongs to no association: INIT, COOKIE
// ECHO and everything out of the blue (RFC 9260, Section 8.4). A reply is
// appended to out.
func (l *Listener) HandlePacket(now clock.Time, p *Packet, out []byte) Result {
	// RFC 9653, Section 5.3: packets out of the blue MAY have a checksum of zero
	// as well: their sender learns earlier that its association is gone.
	h, drop := checkPacket(p, p.verified(&l.cfg))
	if drop != DropNone {
		return dropped(drop)
	}
	if h.DstPort != l.p.Port {
		return dropped(DropPorts)
	}
	it := wire.NewChunks(p.Data[wire.HeaderLen:])
	if !it.Next() {
		return dropped(DropMalformed)
	}
	first := it.Chunk()
	if first.Type == wire.ChunkAuth && it.Next() && it.Chunk().Type == wire.ChunkCookieEcho {
		// RFC 4895, Section 6.3: "authentication is based on the contents of the
		// COOKIE-ECHO chunk".
		first = it.Chunk()
	}
	switch c := first; {
	case c.Type == wire.ChunkInit && h.VTag == 0:
		// RFC 9260, Section 8.5.1, A, and Section 6.10: the INIT is alone.
		x, err := wire.ParseInit(c)
		if err != nil || x.Tag == 0 || len(it.Rest()) > 0 || !address.Usable(p.Remote.Addr().Unmap()) {
			return dropped(DropMalformed)
		}
		return l.handleInit(now, p, h, &x, out)
	case c.Type == wire.ChunkCookieEcho:
		return l.handleCookieEcho(now, p, h, c, out)
	}
	return Result{Answer: replyOOTB(h, p, out)}
}

// handleInit answers an INIT with an INIT ACK, or with an ABORT (RFC 9260,
// Section 5.1, B).
func (l *Listener) handleInit(now clock.Time, p *Packet, h wire.Header, x *wire.Init, out []byte) Result {
	var in cookie.Init
	in.Parse(x, false)
	in.Check(localFeatures(&l.cfg))
	if causes, bad := in.Refusal(nil, false); bad {
		return replied(appendAbortPacket(out, h, in.Tag, false, causes))
	}
	// Section 5.1.2, D: any listed address may identify an existing association.
	if tag, ok := l.find(&in.Addrs, address.Unmap(p.Remote), h); ok {
		return Result{ForTag: tag}
	}
	tag := l.rng.tag()
	for l.p.TagInUse != nil && l.p.TagInUse(tag) || l.retired(tag) {
		tag = l.rng.tag()
	}
	s := cookie.State{
		Created: now, Life: cookieLife(&l.cfg, in.LifeMS),
		LocalPort: h.DstPort, PeerPort: h.SrcPort,
		LocalTag: tag,
		Out:      min(l.cfg.OutStreams, in.In), In: min(l.cfg.InStreams, in.Out),
	}
	s.FromPeer(&in, address.Unmap(p.Remote), localFeatures(&l.cfg))
	l.p.Cookies.Derive(&s)
	r := appendInitAckPacket(out, h, len(p.Data), &s, &in, l.p.Cookies, &l.cfg, l.p.Local)
	if len(r) > maxAmplification*len(p.Data) {
		// Addresses are all that is left to leave out. We are single-homed then.
		s.Single = true
		r = appendInitAckPacket(out, h, len(p.Data), &s, &in, l.p.Cookies, &l.cfg, nil)
	}
	return replied(r)
}

// find returns the local tag of the association with a peer that has the address from, or
// one of a list with the same UDP port.
func (l *Listener) find(list *address.List, from netip.AddrPort, h wire.Header) (tag uint32, ok bool) {
	if l.p.Find == nil {
		return 0, false
	}
	for _, a := range list.All() {
		if tag, ok = l.p.Find(netip.AddrPortFrom(a, from.Port()), h.DstPort, h.SrcPort); ok {
			return tag, true
		}
	}
	return l.p.Find(from, h.DstPort, h.SrcPort)
}

// retired reports whether a tag was that of an association that is gone.
func (l *Listener) retired(tag uint32) bool { return l.p.TagRetired != nil && l.p.TagRetired(tag) }

// maxAmplification is how many times as long as an INIT the INIT ACK may be that
// goes to an address of which nothing else is known: to answer with more would
// make weft a means to flood others (RFC 5062, Section 9). UDP payload counts.
const maxAmplification = 3

// cookieLife returns the life of a cookie for a peer that asked for an
// extension of so many milliseconds (RFC 9260, Section 3.3.2.1.3); it is bounded
// against replay.
func cookieLife(cfg *Config, extensionMS uint32) clock.Time {
	return clock.Time(cfg.CookieLife + min(time.Duration(extensionMS)*time.Millisecond, maxCookieLifeExtension))
}

// MaxCookieLife returns for how long a cookie can be valid, with whatever extension
// a peer asks for.
func (c *Config) MaxCookieLife() time.Duration {
	d := c.withDefaults()
	return d.CookieLife + maxCookieLifeExtension
}

// appendInitAckPacket appends a packet with an INIT ACK that answers the INIT in
// to out, and returns that packet alone. The INIT came in a packet of so many
// bytes.
func appendInitAckPacket(
	out []byte, h wire.Header, packet int, s *cookie.State, in *cookie.Init, jar *cookie.Jar, cfg *Config,
	local []netip.AddrPort,
) []byte {
	var buf [cookie.MaxLen]byte
	ip := cookie.InitParams{
		Tag: s.LocalTag, RWND: uint32(cfg.RecvBuffer), Out: s.Out, In: cfg.InStreams, TSN: s.LocalTSN,
		Features: localFeatures(cfg), Adaptation: cfg.Adaptation, Addrs: address.Listable(local),
		Cookie: jar.Seal(buf[:0], s), UnknownParams: in.AppendUnknown(nil, true),
	}
	if s.Auth != nil {
		ip.Auth = auth.NewVector(s.Random, cfg.Auth)
	}
	b := wire.AppendHeader(out, wire.Header{SrcPort: h.DstPort, DstPort: h.SrcPort, VTag: in.Tag})
	at := len(b)
	if b = ip.Append(b, true); len(b)-len(out) > maxAmplification*packet && !s.Own {
		// What the peer does not support it cannot make use of.
		ip.Features &= in.Features
		if !in.HasAdaptation {
			ip.Adaptation = nil
		}
		b = ip.Append(b[:at], true)
	}
	wire.SetChecksum(b[len(out):])
	return b[len(out):]
}

// handleCookieEcho makes an association of a valid cookie (RFC 9260, Section
// 5.1.5).
func (l *Listener) handleCookieEcho(now clock.Time, p *Packet, h wire.Header, c wire.Chunk, out []byte) Result {
	var s cookie.State
	err := l.p.Cookies.Open(&s, h, p.Remote, p.Local, c.Value, now)
	switch {
	case err == cookie.ErrForged:
		return dropped(DropCookie)
	case err == cookie.ErrStale, s.Own, l.retired(s.LocalTag):
		// RFC 9260, Section 5.3.1: an association of ours has had the tag of a
		// cookie that is its own, or was taken before, and the TSNs. It is gone, so
		// they are not to be used again: if the peer still wants an association, it
		// begins anew.
		return replied(appendStalePacket(out, &s, now, l.cfg.Auth))
	case s.LocalTie|s.PeerTie != 0:
		// It was made for a restart of an association. If that is still there, the
		// cookie came from an address that is not known to be the peer's.
		if tag, ok := l.find(&s.Addrs, s.Remote, h); ok {
			return Result{ForTag: tag}
		}
		// Else its streams and features are as good as any.
	}
	if l.p.TagInUse != nil && l.p.TagInUse(s.LocalTag) {
		return dropped(DropCookie)
	}
	a := newFromCookie(l.shared, now, &s, p, l)
	if a.HandlePacket(now, p) == DropAuth {
		return dropped(DropAuth) // RFC 4895, Section 6.3
	}
	return Result{New: a}
}

// appendStalePacket appends a packet with the ERROR chunk that tells the peer
// how stale its cookie s is (RFC 9260, Section 3.3.10.3), and returns that
// packet alone. A peer that takes errors only authenticated gets it so, with the
// keys of c.
func appendStalePacket(out []byte, s *cookie.State, now clock.Time, c *auth.Config) []byte {
	b := wire.AppendHeader(out, wire.Header{SrcPort: s.LocalPort, DstPort: s.PeerPort, VTag: s.PeerTag})
	var m auth.State
	if must := s.Auth.Chunks(); c != nil && must.Has(wire.ChunkError) {
		m.Init(c, s.Random)
		m.Learn(s.Features.Has(feature.Auth), s.Auth)
	}
	at := len(b)
	if m.On {
		b = m.Begin(b)
	}
	// "… rounded up in microseconds".
	usec := min((s.Staleness(now)+clock.Time(time.Microsecond)-1)/clock.Time(time.Microsecond), 1<<32-1)
	b = wire.AppendOpError(b, wire.OpError{Causes: wire.AppendStaleCookie(nil, uint32(usec))})
	if m.On {
		m.Finish(b[at:])
	}
	wire.SetChecksum(b[len(out):])
	return b[len(out):]
}
