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
	maxSegs int              // datagrams that all take at once
	direct  bool             // they are of SCTP directly over IP
	canPoll bool             // some can be polled
}

func newSocketSet(list []*socket) *socketSet {
	set := &socketSet{list: list, maxSegs: udpio.MaxSegments}
	for _, s := range list {
		set.locals = append(set.locals, s.conn.LocalAddr())
		set.direct = set.direct || s.direct
		set.maxSegs = min(set.maxSegs, s.conn.Segments())
		set.canPoll = set.canPoll || s.conn.CanPoll()
	}
	return set
}

// uniform returns ErrConfig if not all sockets are of the same kind, or if a socket of SCTP
// over IP would get the packets of another one, which the system allows for raw sockets.
func (set *socketSet) uniform() error {
	for i, s := range set.list {
		if s.direct != set.direct {
			return ErrConfig
		}
		for _, o := range set.locals[:i] {
			l := set.locals[i]
			if any := l.Addr().IsUnspecified() || o.Addr().IsUnspecified(); set.direct && (o == l || any && l.Addr().Is4() == o.Addr().Is4()) {
				return ErrConfig
			}
		}
	}
	return nil
}

// choose returns the socket to send a packet from. If none fits the addresses it returns one
// that cannot send it.
func (set *socketSet) choose(tu *core.Tuple) *socket {
	if len(set.list) == 1 {
		return set.list[0]
	}
	var family *socket
	v4 := tu.Remote.Addr().Is4()
	for i, s := range set.list {
		l := set.locals[i]
		switch {
		case l == tu.Local, l.Port() == tu.Local.Port() && l.Addr().IsUnspecified() && l.Addr().Is4() == v4:
			return s
		case family == nil && (l.Addr().Is4() == v4 || l.Addr() == netip.IPv6Unspecified() && !s.direct):
			family = s
		}
	}
	if family == nil {
		return set.list[0]
	}
	return family
}

// reaches reports whether some socket can send to an address.
func (set *socketSet) reaches(addr netip.AddrPort) bool {
	if set.direct != (addr.Port() == 0) {
		return false
	}
	v4 := addr.Addr().Is4()
	return slices.ContainsFunc(set.locals, func(l netip.AddrPort) bool {
		return l.Addr().Is4() == v4 || l.Addr() == netip.IPv6Unspecified() && !set.direct || !l.IsValid()
	})
}

// AddAddr opens another socket, on addr; port 0 asks for that of the first socket,
// which is none with TransportConfig.IPAddrs: ErrConfig is returned for another one
// then. Endpoints tell it to new peers; Association.AddAddr tells it to one there is.
// It returns the bound address.
func (t *Transport) AddAddr(addr netip.AddrPort) (netip.AddrPort, error) {
	set := t.sockets()
	if t.conn != nil {
		return netip.AddrPort{}, ErrNotSupported
	}
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), set.locals[0].Port())
	}
	var c udpio.Conn
	var err error
	switch {
	case !set.direct:
		c, err = udpio.Listen(addr, t.socketOptions())
	case addr.Port() != 0:
		err = ErrConfig
	default:
		c, err = udpio.ListenIP(addr.Addr(), t.socketOptions())
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	return t.addConn(c)
}

// AddConn is AddAddr with a connection that is ready; the transport owns it from
// then on. ErrConfig is returned for one that goes with the others no better than
// LocalAddrs with IPAddrs.
func (t *Transport) AddConn(pc PacketConn) (netip.AddrPort, error) {
	c, err := udpio.FromPacketConn(pc, t.socketOptions())
	if err != nil {
		pc.Close()
		return netip.AddrPort{}, err
	}
	return t.addConn(c)
}

func (t *Transport) addConn(c udpio.Conn) (netip.AddrPort, error) {
	if t.conn != nil {
		c.Close()
		return netip.AddrPort{}, ErrNotSupported
	}
	t.setMu.Lock()
	defer t.setMu.Unlock()
	if t.demux.isClosed() {
		c.Close()
		return netip.AddrPort{}, ErrClosed
	}
	s := newSocket(t, c)
	set := newSocketSet(append(slices.Clone(t.sockets().list), s))
	if err := set.uniform(); err != nil {
		c.Close()
		return netip.AddrPort{}, err
	}
	t.leader.add(c)
	t.set.Store(set)
	t.readers.Add(1)
	go s.readLoop()
	t.relisten()
	return c.LocalAddr(), nil
}

// RemoveAddr closes the socket that is bound to addr, which may not be the last
// one. Peers are not told: see Association.RemoveAddr.
func (t *Transport) RemoveAddr(addr netip.AddrPort) error {
	if t.conn != nil {
		return ErrNotSupported
	}
	t.setMu.Lock()
	defer t.setMu.Unlock()
	set := t.sockets()
	i := slices.Index(set.locals, addr)
	if i < 0 || len(set.list) == 1 {
		return ErrAddress
	}
	t.set.Store(newSocketSet(slices.Delete(slices.Clone(set.list), i, i+1)))
	t.relisten()
	set.list[i].removed.Store(true)
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
	return udpio.Options{Buffer: t.cfg.SocketBuffer, NoOffload: t.cfg.NoOffload, TooBig: t.tooBig, NoProtocol: t.noProtocol, NoPort: t.noPort}
}
