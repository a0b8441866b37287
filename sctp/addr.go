package sctp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// DefaultUDPPort is the UDP port registered for SCTP encapsulation (RFC 6951,
// Section 5.1).
const DefaultUDPPort = 9899

// Addr names one SCTP endpoint: an SCTP port and the IP addresses it can be
// reached at, each with the UDP encapsulation port in use there (RFC 6951). The
// UDP port 0 stands for SCTP directly over IP, see TransportConfig.IPAddrs; in an
// address to be bound it asks for a free UDP port. Addr is a net.Addr. The first
// address is the primary one.
type Addr struct {
	Addrs []netip.AddrPort
	Port  uint16
}

// Network returns "sctp".
func (a Addr) Network() string { return "sctp" }

// String returns "ip:udp[,ip:udp…]/port", which ParseAddr reads back.
func (a Addr) String() string {
	var b strings.Builder
	for i, ap := range a.Addrs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(ap.String())
	}
	b.WriteByte('/')
	b.WriteString(strconv.Itoa(int(a.Port)))
	return b.String()
}

// Equal reports whether a and b have the same port and the same addresses in
// the same order.
func (a Addr) Equal(b Addr) bool {
	return a.Port == b.Port && slices.Equal(a.Addrs, b.Addrs)
}

// ParseAddr reads "ip:udp[,ip:udp…]/port". Without ":udp" the UDP port is
// DefaultUDPPort; "ip:0" stands for SCTP without UDP, and for a free UDP port in
// [Listen]. Without "/port" the SCTP port is the UDP port of the first address. It
// resolves no names; see [ResolveAddr].
func ParseAddr(s string) (Addr, error) {
	return parseAddr(s, func(host string) ([]netip.Addr, error) {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return nil, err
		}
		return []netip.Addr{ip}, nil
	})
}

// ResolveAddr is ParseAddr for addresses that may contain host names and empty
// hosts (":9899" is UDP port 9899 of the unspecified address). It blocks on the
// resolver until ctx is done. Its errors wrap those of the resolver, a
// *net.DNSError for example.
func ResolveAddr(ctx context.Context, s string) (Addr, error) {
	return parseAddr(s, func(host string) ([]netip.Addr, error) {
		if host == "" {
			return []netip.Addr{netip.IPv6Unspecified()}, nil
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			return []netip.Addr{ip}, nil
		}
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		for i := range ips {
			ips[i] = ips[i].Unmap()
		}
		return ips, nil
	})
}

func parseAddr(s string, lookup func(string) ([]netip.Addr, error)) (Addr, error) {
	hosts, port, hasPort := strings.Cut(s, "/")
	var a Addr
	if hasPort {
		p, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return Addr{}, fmt.Errorf("sctp: address %q: bad SCTP port: %w", s, err)
		}
		a.Port = uint16(p)
	}
	for h := range strings.SplitSeq(hosts, ",") {
		host, udp := h, uint16(DefaultUDPPort)
		if hh, pp, err := net.SplitHostPort(h); err == nil {
			p, err := strconv.ParseUint(pp, 10, 16)
			if err != nil {
				return Addr{}, fmt.Errorf("sctp: address %q: bad UDP port: %w", s, err)
			}
			host, udp = hh, uint16(p)
		}
		ips, err := lookup(host)
		if err != nil {
			return Addr{}, fmt.Errorf("sctp: address %q: %w", s, err)
		}
		for _, ip := range ips {
			a.Addrs = append(a.Addrs, netip.AddrPortFrom(ip, udp))
		}
	}
	if len(a.Addrs) == 0 {
		return Addr{}, fmt.Errorf("sctp: address %q: no IP address", s)
	}
	if !hasPort {
		a.Port = a.Addrs[0].Port()
	}
	return a, nil
}
