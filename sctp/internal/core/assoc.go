package core

import (
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/asconf"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// ClientParams are the addresses and secrets of an association to open.
type ClientParams struct {
	// LocalPort and PeerPort are the SCTP ports, not 0.
	LocalPort, PeerPort uint16
	// Local are the UDP addresses of this host's sockets. Several specific
	// ones make the association multihomed at this end.
	Local []netip.AddrPort
	// Peer are the UDP addresses to send the INIT to, the preferred one first.
	Peer []netip.AddrPort
	// Tag is the local verification tag: random, not 0, and not that of
	// another association of the caller.
	Tag uint32
	// Seed makes everything random about the association. It must come from a
	// cryptographic source.
	Seed [32]byte
	// Cookies signs the cookies that are needed when the peer's INIT crosses
	// ours or the peer restarts. Associations and listeners of one transport
	// share it.
	Cookies *cookie.Jar
}

// Assoc is one association. Its parts are the receiver and the sender, the
// paths, and one small machine each for handshake, heartbeats and shutdown. It
// is not safe for concurrent use.
type Assoc struct {
	reachability
	cookies *cookie.Jar

	hs   handshake
	shut shutdown
	receiver
	tx       sender
	rc       reconfig.Handler
	asconfIn asconf.Receiver
	reqs     requests.Numbers

	// What nearly every association has one of is part of it: in one place in memory it takes fewer cache lines and
	// pages than scattered over the heap, and can be prefetched. With ten thousand associations a packet would
	// otherwise wait for that memory for most of its time.
	first struct {
		path  [1]path
		timer [1][timer.NumPathKinds]clock.Time
		cubic cc.CubicControl
		q     tx.Queue
		sb    tx.Scoreboard
	}
}

// NewClient returns an association in COOKIE-WAIT; PollTransmit yields its INIT
// (RFC 9260, Section 5.1, A). It copies what it needs of cfg and p; cfg may be
// nil.
func NewClient(cfg *Config, now clock.Time, p ClientParams) (*Assoc, error) {
	a := new(Assoc)
	if err := a.InitClient(cfg, now, p); err != nil {
		return nil, err
	}
	return a, nil
}

// InitClient is NewClient in place, in an Assoc that is all zero.
func (a *Assoc) InitClient(cfg *Config, now clock.Time, p ClientParams) error {
	if p.LocalPort == 0 || p.PeerPort == 0 || p.Tag == 0 || len(p.Peer) == 0 {
		return ErrParams
	}
	a.init(cfg, p.LocalPort, p.Local, p.Seed, p.Cookies)
	a.tag, a.tsn = p.Tag, seq.TSN(a.rng.uint64())
	a.peer.port = p.PeerPort
	a.initAuth(a.rng.seed())
	for _, r := range p.Peer[:min(len(p.Peer), address.MaxPeer)] {
		r = address.Unmap(r)
		if !address.Usable(r.Addr()) {
			return ErrParams
		}
		if a.pathByIP(r.Addr()) < 0 {
			// RFC 9260, Section 5.4, rule 1.
			a.addPath(netip.AddrPort{}, r, true)
		}
	}
	a.openSender()
	a.setState(CookieWait, "INIT to be sent")
	a.hs.sendInit = true
	a.startT1(now)
	a.slow = a.findSlowReasons()
	return nil
}

func (a *Assoc) init(cfg *Config, port uint16, local []netip.AddrPort, seed [32]byte, jar *cookie.Jar) {
	a.cfg, a.rng, a.cookies, a.port = cfg.withDefaults(), newRandom(seed), jar, port
	a.paths, a.timers.Path = a.first.path[:0], a.first.timer[:0]
	a.receiver.share(&a.cfg, &a.events)
	a.tx.share(&a.cfg, &a.paths, &a.timers)
	a.local = address.NewLocal(local)
	if a.cookies == nil {
		a.cookies = cookie.NewJar(a.rng.seed())
	}
}

// newFromCookie returns the association that a valid cookie describes. The
// packet p with the COOKIE ECHO is still to be handled: it is case D of Table
// 12 then.
func newFromCookie(cfg *Config, now clock.Time, s *cookie.State, p *Packet, l *Listener) *Assoc {
	local := l.p.Local
	if s.Single {
		// A packet from an address that the peer does not know would not be ours to it.
		to := address.Unmap(p.Local)
		i := slices.IndexFunc(local, func(l netip.AddrPort) bool { return address.Unmap(l) == to })
		if i >= 0 {
			local = local[i : i+1]
		}
	}
	var a *Assoc
	if l.p.New != nil {
		a = l.p.New()
	} else {
		a = new(Assoc)
	}
	a.init(cfg, s.LocalPort, local, l.rng.seed(), l.p.Cookies)
	a.fromCookie(s)
	if remote := address.Unmap(p.Remote); remote != s.Remote {
		// The COOKIE ECHO took another way than the INIT: a listed address.
		if i := a.pathByAddr(remote); i < 0 && a.pathByIP(remote.Addr()) < 0 && len(a.paths) < address.MaxPeer {
			a.addPath(netip.AddrPort{}, remote, false)
		}
	}
	a.setState(Established, "COOKIE ECHO received")
	a.events.push(Event{Kind: EventUp, Tag: a.tag})
	a.startHeartbeats(now)
	a.slow = a.findSlowReasons()
	return a
}

// fromCookie sets up tags, paths and streams as a cookie says.
func (a *Assoc) fromCookie(s *cookie.State) {
	a.tag, a.tsn = s.LocalTag, s.LocalTSN
	a.peer = peerInfo{port: s.PeerPort, tag: s.PeerTag}
	a.peer.learn(s.Features, s.Adaptation, s.HasAdaptation)
	a.clearPaths()
	// RFC 9260, Section 5.4, rule 2: "the only CONFIRMED address is the address
	// to which the packet containing the INIT ACK chunk was sent".
	a.addPath(s.Local, s.Remote, true)
	a.addPeerAddrs(&s.Addrs, s.Remote.Port())
	a.initAuth(s.Random)
	a.learnAuth(s.Auth)
	a.openSender()
	a.openStreams(int(s.Out), int(s.In), s.PeerTSN, s.PeerRWND)
	a.prefer(s.Preferred())
}

// openStreams prepares both directions once the peer's parameters are known.
func (a *Assoc) openStreams(out, in int, peerTSN seq.TSN, rwnd uint32) {
	a.rx.open(&a.cfg, in, peerTSN, a.peer.features.Has(feature.IData), a.rng.uint64())
	a.openPeer(out, rwnd)
	a.openReconfig(peerTSN)
	a.openAsconf(peerTSN)
}

// Streams returns the numbers of outgoing and incoming streams; 0 incoming ones
// before they were agreed on.
func (a *Assoc) Streams() (out, in int) { return a.tx.streams, a.rx.streams }

// Release gives back everything the association still holds, unread data
// included. It is the last call.
func (a *Assoc) Release() {
	a.close(ErrClosed)
	a.rx.close()
}
