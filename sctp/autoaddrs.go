package sctp

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// DefaultAddrInterval is the default of AutoAddrs.Interval.
const DefaultAddrInterval = 5 * time.Second

// AutoAddrs has a transport follow the addresses of the host (RFC 6458, Section
// 8.1.23, SCTP_AUTO_ASCONF). The transport has a socket for each of them, at most 16,
// instead of one that is bound to all, so that peers learn of them. Sockets come and go
// with the addresses. Peers of associations that can change their addresses
// (Config.ChangeAddrs at both ends) are told of a new address by AddAddr, of one that is
// gone by RemoveAddr, and by ReplaceAddr if none of the earlier ones is left. While the
// host has no address the sockets stay as they were.
type AutoAddrs struct {
	// Interval is how often the host is asked (default DefaultAddrInterval).
	Interval time.Duration
	// List returns the addresses to have. The default is the global ones of the
	// interfaces that are up, private ones included, or those of the loopback
	// interface as long as there have been no others.
	List func() ([]netip.Addr, error)
	// Listen opens the socket for an address; the default is a UDP socket. The
	// transport owns it. If Listen fails it is called again after Interval.
	Listen func(netip.AddrPort) (PacketConn, error)
}

// hostAddrs is the default of AutoAddrs.List. Its peers cannot reach a host that
// has lost its addresses by those of the loopback interface.
func (m *addrMonitor) hostAddrs() ([]netip.Addr, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list, loopback []netip.Addr
	for i := range ifs {
		if ifs[i].Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := ifs[i].Addrs()
		if err != nil {
			continue // it is gone since
		}
		for _, x := range addrs {
			n, ok := x.(*net.IPNet)
			if !ok {
				continue
			}
			ip, ok := netip.AddrFromSlice(n.IP)
			switch ip = ip.Unmap(); {
			case !ok || !m.takes(ip):
			case ip.IsGlobalUnicast():
				list = append(list, ip)
			case ip.IsLoopback():
				loopback = append(loopback, ip)
			}
		}
	}
	if m.global = m.global || len(list) > 0; m.global {
		return list, nil
	}
	return loopback, nil
}

// addrMonitor watches the addresses of the host, and keeps the sockets and associations of a
// transport up to date.
type addrMonitor struct {
	AutoAddrs
	t      *Transport
	any    netip.AddrPort // what the sockets stand for: its family and port
	gen    uint32         // of the set of sockets
	global bool           // the host has had other addresses than those of loopback
	stop   chan struct{}
}

// newAddrMonitor returns nil if cfg wants none.
func newAddrMonitor(t *Transport, cfg *TransportConfig) (*addrMonitor, error) {
	if cfg.AutoAddrs == nil {
		return nil, nil
	}
	m := &addrMonitor{AutoAddrs: *cfg.AutoAddrs, t: t, gen: 1, stop: make(chan struct{}),
		any: netip.AddrPortFrom(netip.IPv6Unspecified(), DefaultUDPPort)}
	switch {
	case len(cfg.Conns) > 0, len(cfg.IPAddrs) > 0, len(cfg.LocalAddrs) > 1, len(cfg.LocalAddrs) == 1 && !cfg.LocalAddrs[0].Addr().IsUnspecified():
		return nil, ErrConfig // "it only affects sockets that are bound to all addresses"
	case len(cfg.LocalAddrs) == 1:
		m.any = cfg.LocalAddrs[0]
	}
	if m.Interval <= 0 {
		m.Interval = DefaultAddrInterval
	}
	if m.List == nil {
		m.List = m.hostAddrs
	}
	return m, nil
}

// takes reports whether an address is of a family to have.
func (m *addrMonitor) takes(ip netip.Addr) bool { return ip.Is4() || m.any.Addr().Is6() }

// wanted returns the addresses to have.
func (m *addrMonitor) wanted() []netip.AddrPort {
	list, err := m.List()
	if err != nil {
		return nil
	}
	var all []netip.AddrPort
	for _, ip := range list {
		ip = ip.Unmap()
		if a := netip.AddrPortFrom(ip, m.any.Port()); m.takes(ip) && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// listen opens a socket.
func (m *addrMonitor) listen(addr netip.AddrPort) (udpio.Conn, error) {
	o := m.t.socketOptions()
	if m.Listen == nil {
		return udpio.Listen(addr, o)
	}
	pc, err := m.Listen(addr)
	if err != nil {
		return nil, err
	}
	c, err := udpio.FromPacketConn(pc, o)
	if err != nil {
		pc.Close()
	}
	return c, err
}

// open opens the sockets to begin with: those that can be, but one at least. The
// first decides on a port that is free.
func (m *addrMonitor) open() (list []*socket, failed error) {
	for _, a := range m.wanted() {
		if len(list) == address.MaxLocal {
			break
		}
		c, err := m.listen(netip.AddrPortFrom(a.Addr(), m.any.Port()))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		list = append(list, newSocket(m.t, c))
		m.any = netip.AddrPortFrom(m.any.Addr(), c.LocalAddr().Port())
	}
	switch {
	case len(list) > 0:
		return list, nil
	case failed == nil:
		failed = ErrAddress // the host has none
	}
	return nil, failed
}

// run follows the host until the transport is closed.
func (m *addrMonitor) run() {
	defer m.t.readers.Done()
	tick := time.NewTicker(m.Interval)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
			m.update()
		}
	}
}

// update makes the sockets and the associations what the host is like now.
func (m *addrMonitor) update() {
	want, have := m.wanted(), m.t.LocalAddrs()
	if len(want) == 0 {
		return
	}
	stay := slices.DeleteFunc(slices.Clone(have), func(a netip.AddrPort) bool { return !slices.Contains(want, a) })
	for _, a := range want {
		if slices.Contains(have, a) || len(stay) == address.MaxLocal {
			continue
		}
		if c, err := m.listen(a); err == nil {
			if _, err = m.t.addConn(c); err == nil {
				stay = append(stay, a)
			}
		}
	}
	if len(stay) == 0 {
		return
	}
	if len(stay) != len(have) || slices.ContainsFunc(stay, func(a netip.AddrPort) bool { return !slices.Contains(have, a) }) {
		m.gen++
	}
	for _, e := range m.t.demux.endpoints() {
		if !e.cfg.ChangeAddrs {
			continue
		}
		for _, a := range m.t.demux.associations(e) {
			a.follow(m.gen, stay)
		}
	}
	for _, a := range have {
		if !slices.Contains(stay, a) {
			_ = m.t.RemoveAddr(a)
		}
	}
}

// follow has the association use the addresses of generation gen, if it does not
// yet.
func (a *Association) follow(gen uint32, addrs []netip.AddrPort) {
	a.mu.Lock()
	if a.addrGen == gen || a.dead {
		a.mu.Unlock()
		return
	}
	now := a.t.now()
	if a.core.FollowLocalAddrs(addrs) {
		a.addrGen = gen
	}
	a.goCallbacks(a.flushLocked(now))
}
