package tcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/gateway/socks5"
)

const (
	// negotiateTime is how long a client of SOCKS5 may take to say what it wants.
	negotiateTime = 10 * time.Second
	// resolveTime is how long the name of a destination may take.
	resolveTime = 5 * time.Second
)

// socks carries a connection that a client of SOCKS5 asks for.
func (p *proxy) socks(users socks5.Users) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		_ = c.SetDeadline(time.Now().Add(negotiateTime))
		t, err := socks5.Negotiate(c, users)
		if err != nil {
			p.count(func(c *Counters) { c.BadClients++ })
			p.warn("client of SOCKS5 refused", slog.String("from", c.RemoteAddr().String()), slog.Any("error", err))
			_ = c.Close()
			return
		}
		_ = c.SetDeadline(time.Time{})
		dst, err := p.resolve(t)
		if err != nil {
			_ = socks5.Answer(c, socks5.HostUnreachable)
			p.warn("name of a destination", slog.String("from", c.RemoteAddr().String()), slog.Any("error", err))
			_ = c.Close()
			return
		}
		s, err := p.open(c, dst)
		if err != nil {
			_ = socks5.Answer(c, replyOf(err))
			_ = c.Close()
			return
		}
		if err := socks5.Answer(c, socks5.Succeeded); err != nil {
			s.Reset()
			_ = c.Close()
			return
		}
		p.join(c, s)
	}
}

// resolve returns the destination of a target. Of several addresses of a name it is the first one of another site.
func (p *proxy) resolve(t socks5.Target) (netip.AddrPort, error) {
	if t.Addr.IsValid() {
		return t.Addr, nil
	}
	if a, err := netip.ParseAddr(t.Domain); err == nil {
		return netip.AddrPortFrom(a.Unmap(), t.Port), nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, resolveTime)
	defer cancel()
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", t.Domain)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if len(list) == 0 {
		return netip.AddrPort{}, fmt.Errorf("%s has no address", t.Domain)
	}
	for _, a := range list {
		if p.siteOf(a.Unmap()) != nil {
			return netip.AddrPortFrom(a.Unmap(), t.Port), nil
		}
	}
	return netip.AddrPortFrom(list[0].Unmap(), t.Port), nil
}

// checkSOCKS refuses a port that anybody could use.
func checkSOCKS(address string, users, anybody bool) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("-socks %q: want ADDRESS:PORT, such as 127.0.0.1:1080", address)
	}
	if !a.Addr().IsLoopback() && !users && !anybody {
		return errors.New("-socks " + address + " is not on the loopback: want -socks-users FILE, or -socks-any for a port that any host may use")
	}
	return nil
}
