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
func (f *follower) hostAddrs() ([]netip.Addr, error) {
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
			case !ok || !f.takes(ip):
			case ip.IsGlobalUnicast():
				list = append(list, ip)
			case ip.IsLoopback():
				loopback = append(loopback, ip)
			}
		}
	}
	if f.global = f.global || len(list) > 0; f.global {
		return list, nil
	}
	return loopback, nil
}

// follower keeps the sockets and associations of a transport up to date.
type follower struct {
	AutoAddrs
	t      *Transport
	any    netip.AddrPort // what the sockets stand for: its family and port
	gen    uint32         // of the set of sockets
	global bool           // the host has had other addresses than those of loopback
	stop   chan struct{}
}

// newFollower returns nil if cfg wants none.
func newFollower(t *Transport, cfg *TransportConfig) (*follower, error) {
	if cfg.AutoAddrs == nil {
		return nil, nil
	}
	f := &follower{AutoAddrs: *cfg.AutoAddrs, t: t, gen: 1, stop: make(chan struct{}),
		any: netip.AddrPortFrom(netip.IPv6Unspecified(), DefaultUDPPort)}
	switch {
	case len(cfg.Conns) > 0, len(cfg.IPAddrs) > 0, len(cfg.LocalAddrs) > 1, len(cfg.LocalAddrs) == 1 && !cfg.LocalAddrs[0].Addr().IsUnspecified():
		return nil, ErrConfig // "it only affects sockets that are bound to all addresses"
	case len(cfg.LocalAddrs) == 1:
		f.any = cfg.LocalAddrs[0]
	}
	if f.Interval <= 0 {
		f.Interval = DefaultAddrInterval
	}
	if f.List == nil {
		f.List = f.hostAddrs
	}
	return f, nil
}

// takes reports whether an address is of a family to have.
func (f *follower) takes(ip netip.Addr) bool { return ip.Is4() || f.any.Addr().Is6() }

// wanted returns the addresses to have.
func (f *follower) wanted() []netip.AddrPort {
	list, err := f.List()
	if err != nil {
		return nil
	}
	var all []netip.AddrPort
	for _, ip := range list {
		ip = ip.Unmap()
		if a := netip.AddrPortFrom(ip, f.any.Port()); f.takes(ip) && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// listen opens a socket.
func (f *follower) listen(addr netip.AddrPort) (udpio.Conn, error) {
	o := f.t.socketOptions()
	if f.Listen == nil {
		return udpio.Listen(addr, o)
	}
	pc, err := f.Listen(addr)
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
func (f *follower) open() (list []*socket, failed error) {
	for _, a := range f.wanted() {
		if len(list) == address.MaxLocal {
			break
		}
		c, err := f.listen(netip.AddrPortFrom(a.Addr(), f.any.Port()))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		list = append(list, newSocket(f.t, c))
		f.any = netip.AddrPortFrom(f.any.Addr(), c.LocalAddr().Port())
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
func (f *follower) run() {
	defer f.t.readers.Done()
	tick := time.NewTicker(f.Interval)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
			f.follow()
		}
	}
}

// follow makes the sockets and the associations what the host is like now.
func (f *follower) follow() {
	want, have := f.wanted(), f.t.LocalAddrs()
	if len(want) == 0 {
		return
	}
	stay := slices.DeleteFunc(slices.Clone(have), func(a netip.AddrPort) bool { return !slices.Contains(want, a) })
	for _, a := range want {
		if slices.Contains(have, a) || len(stay) == address.MaxLocal {
			continue
		}
		if c, err := f.listen(a); err == nil {
			if _, err = f.t.addConn(c); err == nil {
				stay = append(stay, a)
			}
		}
	}
	if len(stay) == 0 {
		return
	}
	if len(stay) != len(have) || slices.ContainsFunc(stay, func(a netip.AddrPort) bool { return !slices.Contains(have, a) }) {
		f.gen++
	}
	for _, e := range f.t.demux.endpoints() {
		if !e.cfg.ChangeAddrs {
			continue
		}
		for _, a := range f.t.demux.associations(e) {
			a.follow(f.gen, stay)
		}
	}
	for _, a := range have {
		if !slices.Contains(stay, a) {
			_ = f.t.RemoveAddr(a)
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
