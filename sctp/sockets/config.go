package sockets

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/weftstack/weft/sctp"
)

// SocketConfig holds the options of a socket. The zero value is ready for use.
type SocketConfig struct {
	// Control, if not nil, is called before the socket is bound. There is no file descriptor:
	// the methods of c return errors.ErrUnsupported and call nothing.
	Control func(network, address string, c syscall.RawConn) error
	// NotificationHandler, if not nil, is called by reads with the notifications that
	// SubscribeEvents asked for, instead of returning them.
	NotificationHandler NotificationHandler
	// InitMsg is what associations are opened with.
	InitMsg InitMsg
	// RtoInfo and AssocInfo, if not nil, are parameters of the associations.
	RtoInfo   *RtoInfo
	AssocInfo *AssocInfo

	// The fields below are not of the Go binding.

	// SackTimer, if not nil, is about delayed acknowledgements.
	SackTimer *SackTimer
	// Encap says how packets travel, PPID how the field SndRcvInfo.PPID is given.
	Encap Encap
	PPID  PPIDOrder
	// Events are subscribed to from the beginning, also by accepted sockets, which otherwise
	// subscribe too late to see their own SCTP_COMM_UP.
	Events int
	// ReadBuffer and WriteBuffer bound what each association holds in each direction, in
	// bytes (default 4 MiB each).
	ReadBuffer, WriteBuffer int
	// Backlog bounds the associations that wait for Accept (default sctp.DefaultBacklog); more
	// are aborted.
	Backlog int
	// HeartbeatInterval is how often an idle path is probed (default 30 s; negative: never),
	// PathMaxRetransmits after how many timeouts in a row a path has failed (default 5).
	HeartbeatInterval  time.Duration
	PathMaxRetransmits int
	// ChangeAddrs lets both ends add and remove addresses while associations are up (RFC
	// 5061): see [SCTPConn.SCTPBind].
	ChangeAddrs bool
	// ListenPacket, if not nil, opens what takes the place of a UDP socket for each local
	// address: a connection of a sctptest.Network, for example. Such transports are not
	// shared with other sockets.
	ListenPacket func(local netip.AddrPort) (net.PacketConn, error)
}

// Bounds of SocketConfig.ReadBuffer and WriteBuffer, and of SetReadBuffer, in bytes.
const (
	minBuffer     = 4 << 10
	defaultBuffer = 4 << 20
	maxBuffer     = 1 << 30
)

// settings is a checked SocketConfig.
type settings struct {
	SocketConfig
	network string
}

// check returns the settings for sockets of cfg, with defaults filled in.
func (cfg *SocketConfig) check(network string) (*settings, error) {
	s := &settings{SocketConfig: *cfg, network: network}
	bad := func(format string, args ...any) (*settings, error) {
		return nil, withErrno(fmt.Errorf("sctp: "+format+": %w", append(args, sctp.ErrConfig)...), syscall.EINVAL)
	}
	if (s.Encap == EncapDefault || s.PPID == PPIDDefault) && errEnv != nil {
		return nil, errEnv
	}
	if err := s.Encap.check(); err != nil {
		return nil, err
	}
	if s.Encap == EncapDefault {
		s.Encap = Encap(defaultEncap.Load())
	}
	if s.PPID == PPIDDefault {
		s.PPID = PPIDOrder(defaultPPID.Load())
	}
	for _, b := range []struct {
		name string
		size *int
	}{{"ReadBuffer", &s.ReadBuffer}, {"WriteBuffer", &s.WriteBuffer}} {
		if *b.size == 0 {
			*b.size = defaultBuffer
		}
		if *b.size < minBuffer || *b.size > maxBuffer {
			return bad("%s of %d bytes: %d to %d", b.name, *b.size, minBuffer, maxBuffer)
		}
	}
	switch {
	case s.PPID != PPIDNetwork && s.PPID != PPIDHost:
		return bad("PPID order %d", s.PPID)
	case s.Events&^SCTP_EVENT_ALL != 0:
		return bad("events %#x: at most %#x", s.Events, SCTP_EVENT_ALL)
	case s.Backlog < 0:
		return bad("Backlog %d", s.Backlog)
	case s.PathMaxRetransmits < 0:
		return bad("PathMaxRetransmits %d", s.PathMaxRetransmits)
	case s.ListenPacket != nil && s.Encap == EncapIP:
		return bad("ListenPacket without UDP")
	case s.SackTimer != nil && s.SackTimer.SackDelay > 500:
		return bad("SackDelay %d ms: at most 500 (RFC 9260, Section 6.2)", s.SackTimer.SackDelay)
	case s.SackTimer != nil && s.SackTimer.SackFrequency > math.MaxInt32:
		return bad("SackFrequency %d: at most %d", s.SackTimer.SackFrequency, math.MaxInt32)
	}
	if s.Backlog == 0 {
		s.Backlog = sctp.DefaultBacklog
	}
	if r := s.RtoInfo; r != nil {
		c := s.config(true)
		lo, first, hi := orDefault(c.RTOMin, 200*time.Millisecond), orDefault(c.RTOInitial, time.Second), orDefault(c.RTOMax, time.Minute)
		if lo > first || first > hi {
			return bad("RTO of at least %v, at first %v, at most %v", lo, first, hi)
		}
	}
	return s, nil
}

func orDefault(d, dflt time.Duration) time.Duration {
	if d == 0 {
		return dflt
	}
	return d
}

func milliseconds(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

// config returns the configuration of an endpoint, without callbacks. Messages are not
// interleaved (RFC 8260), as with the kernel by default: a message that is delivered in part
// can then keep others of its association back without end.
func (s *settings) config(dial bool) *sctp.Config {
	c := &sctp.Config{
		OutStreams: s.InitMsg.NumOstreams, InStreams: s.InitMsg.MaxInstreams,
		MaxInitRetransmits: int(s.InitMsg.MaxAttempts), MaxInitTimeout: milliseconds(uint32(s.InitMsg.MaxInitTimeout)),
		RecvBuffer: s.ReadBuffer, SendBuffer: s.WriteBuffer,
		HeartbeatInterval: s.HeartbeatInterval, PathMaxRetransmits: s.PathMaxRetransmits,
		ChangeAddrs: s.ChangeAddrs, NoInterleaving: true, SenderDry: true,
	}
	if dial {
		c.Backlog = -1
	}
	if r := s.RtoInfo; r != nil {
		c.RTOInitial, c.RTOMin, c.RTOMax = milliseconds(r.SrtoInitial), milliseconds(r.StroMin), milliseconds(r.SrtoMax)
	}
	if a := s.AssocInfo; a != nil {
		c.MaxRetransmits, c.CookieLifetime = int(a.AsocMaxRxt), milliseconds(a.CookieLife)
	}
	if t := s.SackTimer; t != nil {
		c.SackDelay, c.SackEvery = milliseconds(t.SackDelay), int(t.SackFrequency)
	}
	return c
}

// place returns where a socket of laddr is bound, which may be nil.
func (s *settings) place(laddr *SCTPAddr, dial bool) (place, error) {
	ips, number, err := laddr.netips(s.network)
	if len(ips) == 0 && s.network == "sctp4" {
		ips = []netip.Addr{netip.IPv4Unspecified()}
	}
	return place{encap: s.Encap, ips: ips, port: number, dial: dial, listen: s.ListenPacket}, err
}

// control calls SocketConfig.Control.
func (s *settings) control(laddr *SCTPAddr) error {
	if s.Control == nil {
		return nil
	}
	var address string
	if laddr != nil {
		address = laddr.String()
	}
	return s.Control(s.network, address, rawConn{})
}

// rawConn stands for a file descriptor that does not exist.
type rawConn struct{}

func (rawConn) Control(func(uintptr)) error    { return errUnsupported }
func (rawConn) Read(func(uintptr) bool) error  { return errUnsupported }
func (rawConn) Write(func(uintptr) bool) error { return errUnsupported }

// DialSCTP opens an association from laddr, which may be nil, to raddr, with up to 65,535
// streams. It is [SocketConfig.Dial] with this InitMsg.
func DialSCTP(network string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	return DialSCTPExt(network, laddr, raddr, InitMsg{NumOstreams: SCTP_MAX_STREAM})
}

// DialSCTPExt is [SocketConfig.Dial] with options.
func DialSCTPExt(network string, laddr, raddr *SCTPAddr, options InitMsg) (*SCTPConn, error) {
	return (&SocketConfig{InitMsg: options}).Dial(network, laddr, raddr)
}

// ListenSCTP listens on laddr, with up to 65,535 streams. It is [SocketConfig.Listen] with this
// InitMsg.
func ListenSCTP(network string, laddr *SCTPAddr) (*SCTPListener, error) {
	return ListenSCTPExt(network, laddr, InitMsg{NumOstreams: SCTP_MAX_STREAM})
}

// ListenSCTPExt is [SocketConfig.Listen] with options.
func ListenSCTPExt(network string, laddr *SCTPAddr, options InitMsg) (*SCTPListener, error) {
	return (&SocketConfig{InitMsg: options}).Listen(network, laddr)
}

// Dial opens an association, in the one-to-one style. network is "sctp", "sctp4" or "sctp6".
// laddr may be nil, and its port 0. Several addresses make a multihomed association.
//
// Dial blocks until the association is established or has failed, which with a peer that does
// not answer takes minutes, as it does with the kernel: InitMsg.MaxAttempts and MaxInitTimeout
// bound it, or the context of [SocketConfig.DialContext].
//
// Errors are *net.OpError; test with errors.Is for syscall.ECONNREFUSED, sctp.ErrTimeout,
// syscall.EADDRINUSE, sctp.ErrAddress and sctp.ErrConfig.
func (cfg *SocketConfig) Dial(network string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	return cfg.DialContext(context.Background(), network, laddr, raddr)
}

// DialContext is Dial that gives up when ctx is done, and returns its error then.
func (cfg *SocketConfig) DialContext(ctx context.Context, network string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	fail := func(err error) (*SCTPConn, error) {
		e := &net.OpError{Op: "dial", Net: "sctp", Err: err}
		if laddr != nil {
			e.Source = laddr
		}
		if raddr != nil {
			e.Addr = raddr
		}
		return nil, e
	}
	set, err := cfg.check(network)
	if err != nil {
		return fail(err)
	}
	at, err := set.place(laddr, true)
	if err != nil {
		return fail(err)
	}
	peer, err := set.peer(raddr)
	if err != nil {
		return fail(err)
	}
	if err := set.control(laddr); err != nil {
		return fail(err)
	}
	c := newConn(set, false)
	p, err := openPort(set, at, func(*port) *SCTPConn { return c }, nil)
	if err != nil {
		return fail(err)
	}
	c.bind(p)
	if _, err := p.ep.Connect(ctx, peer); err != nil {
		p.ep.Close() // an association that came up all the same
		p.release()
		return fail(err)
	}
	return c, nil
}

// peer translates the address of a peer.
func (s *settings) peer(raddr *SCTPAddr) (sctp.Addr, error) {
	ips, number, err := raddr.netips(s.network)
	if err == nil && (len(ips) == 0 || number == 0) {
		err = fmt.Errorf("sctp: peer %v without address or port: %w", raddr, sctp.ErrAddress)
	}
	return sctp.Addr{Addrs: withUDP(ips, s.Encap.udpPort(number)), Port: number}, err
}

// Listen accepts associations on laddr, in the one-to-one style. network is "sctp", "sctp4" or
// "sctp6". laddr may be nil; port 0 asks for a free one. It does not block. Peers learn of the
// addresses that are listed: one socket for all addresses of the host is told as no address.
//
// Errors are *net.OpError; test with errors.Is for syscall.EADDRINUSE, which is also returned
// as long as there are associations of an earlier listener on the port, sctp.ErrAddress and
// sctp.ErrConfig.
func (cfg *SocketConfig) Listen(network string, laddr *SCTPAddr) (*SCTPListener, error) {
	set, at, err := cfg.listenPlace(network, laddr)
	if err != nil {
		return nil, listenError(laddr, err)
	}
	l := &SCTPListener{set: set}
	p, err := openPort(set, at, l.newPeer, l.accept)
	if err != nil {
		return nil, listenError(laddr, err)
	}
	l.bind(p)
	return l, nil
}

// ListenOneToMany is [SocketConfig.ListenOneToMany] with default options.
func ListenOneToMany(network string, laddr *SCTPAddr) (*SCTPConn, error) {
	return new(SocketConfig).ListenOneToMany(network, laddr)
}

// ListenOneToMany makes a one-to-many socket (RFC 6458, Section 3): it takes associations from
// peers, opens others with [SCTPConn.Connect], and reads and writes the messages of all of them.
// Otherwise it behaves like Listen.
func (cfg *SocketConfig) ListenOneToMany(network string, laddr *SCTPAddr) (*SCTPConn, error) {
	set, at, err := cfg.listenPlace(network, laddr)
	if err != nil {
		return nil, listenError(laddr, err)
	}
	c := newConn(set, true)
	p, err := openPort(set, at, func(*port) *SCTPConn { return c }, nil)
	if err != nil {
		return nil, listenError(laddr, err)
	}
	c.bind(p)
	p.watch(c.lost)
	return c, nil
}

// listenPlace checks what Listen is called with.
func (cfg *SocketConfig) listenPlace(network string, laddr *SCTPAddr) (*settings, place, error) {
	set, err := cfg.check(network)
	if err != nil {
		return nil, place{}, err
	}
	at, err := set.place(laddr, false)
	if err != nil {
		return nil, place{}, err
	}
	return set, at, set.control(laddr)
}

func listenError(laddr *SCTPAddr, err error) error {
	e := &net.OpError{Op: "listen", Net: "sctp", Err: err}
	if laddr != nil {
		e.Source = laddr
	}
	return e
}
