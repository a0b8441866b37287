package sctp

import (
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// socketSet is the sockets of a transport. It is never changed: AddAddr and
// RemoveAddr replace it.
type socketSet struct {
	list    []*socket
	locals  []netip.AddrPort // of list, in its order
	told    []netip.AddrPort // locals, but each IP address once: what peers are told
	maxSegs int              // datagrams that all take at once
	direct  bool             // some are of SCTP directly over IP
	udp     bool             // some are not
	canPoll bool             // some can be polled
}

func newSocketSet(list []*socket) *socketSet {
	set := &socketSet{list: list, maxSegs: udpio.MaxSegments}
	for _, s := range list {
		l := s.conn.LocalAddr()
		set.locals = append(set.locals, l)
		if !slices.ContainsFunc(set.told, func(o netip.AddrPort) bool { return o.Addr() == l.Addr() }) {
			set.told = append(set.told, l)
		}
		set.direct = set.direct || s.direct
		set.udp = set.udp || !s.direct
		set.maxSegs = min(set.maxSegs, s.conn.Segments())
		set.canPoll = set.canPoll || s.conn.CanPoll()
	}
	return set
}

// choose returns the socket to send a packet from: one of UDP, unless the peer's port
// says that there is none. A path may have changed that (RFC 6951, Section 5.4), and
// then its local port means nothing.
func (set *socketSet) choose(tu *core.Tuple) *socket {
	if len(set.list) == 1 {
		return set.list[0]
	}
	var family *socket
	v4, direct := tu.Remote.Addr().Is4(), tu.Remote.Port() == 0
	for i, s := range set.list {
		l := set.locals[i]
		if s.direct != direct {
			continue
		}
		port := l.Port() == tu.Local.Port() || direct != (tu.Local.Port() == 0)
		switch {
		case port && (l.Addr() == tu.Local.Addr() || l.Addr().IsUnspecified() && l.Addr().Is4() == v4):
			return s
		case family == nil && (l.Addr().Is4() == v4 || l.Addr() == netip.IPv6Unspecified() && !direct):
			family = s
		}
	}
	if family == nil {
		return set.list[0]
	}
	return family
}

// AddAddr opens another UDP socket, on addr; port 0 asks for that of the first
// one. Endpoints tell it to new peers; Association.AddAddr tells it to one
// there is. It returns the bound address.
func (t *Transport) AddAddr(addr netip.AddrPort) (netip.AddrPort, error) {
	for _, l := range t.sockets().locals {
		if addr.Port() == 0 {
			addr = netip.AddrPortFrom(addr.Addr(), l.Port())
		}
	}
	c, err := udpio.Listen(addr, t.socketOptions())
	if err != nil {
		return netip.AddrPort{}, err
	}
	return t.addConn(c)
}

// AddIPAddr is AddAddr for SCTP directly over IP, see TransportConfig.IPAddrs. The
// address that it returns has the port 0.
func (t *Transport) AddIPAddr(addr netip.Addr) (netip.AddrPort, error) {
	c, err := udpio.ListenIP(addr, t.socketOptions())
	if err != nil {
		return netip.AddrPort{}, err
	}
	return t.addConn(c)
}

// AddConn is AddAddr with a connection that is ready; the transport owns it from
// then on.
func (t *Transport) AddConn(pc PacketConn) (netip.AddrPort, error) {
	c, err := udpio.FromPacketConn(pc, t.socketOptions())
	if err != nil {
		pc.Close()
		return netip.AddrPort{}, err
	}
	return t.addConn(c)
}

func (t *Transport) addConn(c udpio.Conn) (netip.AddrPort, error) {
	t.setMu.Lock()
	defer t.setMu.Unlock()
	if t.demux.isClosed() {
		c.Close()
		return netip.AddrPort{}, ErrClosed
	}
	s := newSocket(t, c)
	t.lead.add(c)
	t.set.Store(newSocketSet(append(slices.Clone(t.sockets().list), s)))
	t.readers.Add(1)
	go s.readLoop()
	t.relisten()
	return c.LocalAddr(), nil
}

// RemoveAddr closes the socket that is bound to addr, which may not be the last
// one. Peers are not told: see Association.RemoveAddr.
func (t *Transport) RemoveAddr(addr netip.AddrPort) error {
	t.setMu.Lock()
	defer t.setMu.Unlock()
	set := t.sockets()
	i := slices.Index(set.locals, addr)
	if i < 0 || len(set.list) == 1 {
		return ErrAddress
	}
	t.set.Store(newSocketSet(slices.Delete(slices.Clone(set.list), i, i+1)))
	t.relisten()
	return set.list[i].conn.Close()
}

// relisten tells the listeners of the addresses there are.
func (t *Transport) relisten() {
	for _, e := range t.demux.endpoints() {
		e.hsMu.Lock()
		e.listen()
		e.hsMu.Unlock()
	}
}

func (t *Transport) sockets() *socketSet { return t.set.Load() }

func (t *Transport) socketOptions() udpio.Options {
	return udpio.Options{Buffer: t.cfg.SocketBuffer, NoOffload: t.cfg.NoOffload, TooBig: t.tooBig, NoProtocol: t.noProtocol}
}
