package sockets

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weftstack/weft/sctp"
)

// SCTPAddr is an SCTP port and the IP addresses that it can be reached at, the primary one
// first. It is a net.Addr. Without addresses it stands for all of the host.
type SCTPAddr struct {
	IPAddrs []net.IPAddr
	Port    int
}

// maxAddrs bounds the addresses of an SCTPAddr.
const maxAddrs = 64

// Network returns "sctp".
func (a *SCTPAddr) Network() string { return "sctp" }

// String returns "ip/ip:port", with IPv6 addresses in brackets.
func (a *SCTPAddr) String() string {
	var b strings.Builder
	for i := range a.IPAddrs {
		if i > 0 {
			b.WriteByte('/')
		}
		if ip := &a.IPAddrs[i]; ip.IP.To4() == nil && len(ip.IP) == net.IPv6len {
			b.WriteString("[" + ip.String() + "]")
		} else if len(ip.IP) > 0 {
			b.WriteString(ip.String())
		}
	}
	return b.String() + ":" + strconv.Itoa(a.Port)
}

// Lengths and families of socket addresses on Linux.
const (
	sockaddrIn4Len, sockaddrIn6Len = 16, 28
	familyIn4, familyIn6           = 2, 10
)

// ToRawSockAddrBuf returns the addresses as socket addresses of Linux, one after another, the
// unspecified IPv4 address if there are none.
func (a *SCTPAddr) ToRawSockAddrBuf() []byte {
	if len(a.IPAddrs) == 0 {
		return appendSockaddr(nil, netip.IPv4Unspecified(), uint16(a.Port))
	}
	var b []byte
	for i := range a.IPAddrs {
		ip, err := toNetip(&a.IPAddrs[i])
		if err != nil {
			ip = netip.IPv4Unspecified()
		}
		b = appendSockaddr(b, ip, uint16(a.Port))
	}
	return b
}

// appendSockaddr appends a struct sockaddr_in or sockaddr_in6 of Linux to b.
func appendSockaddr(b []byte, ip netip.Addr, port uint16) []byte {
	if ip.Is4() {
		b = binary.NativeEndian.AppendUint16(b, familyIn4)
		b = binary.BigEndian.AppendUint16(b, port)
		b = append(b, ip.AsSlice()...)
		return append(b, make([]byte, sockaddrIn4Len-8)...)
	}
	b = binary.NativeEndian.AppendUint16(b, familyIn6)
	b = binary.BigEndian.AppendUint16(b, port)
	b = append(b, 0, 0, 0, 0) // flow information
	b = append(b, ip.AsSlice()...)
	var scope uint32
	if z := ip.Zone(); z != "" {
		if n, err := strconv.ParseUint(z, 10, 32); err == nil {
			scope = uint32(n)
		} else if i, err := net.InterfaceByName(z); err == nil {
			scope = uint32(i.Index)
		}
	}
	return binary.NativeEndian.AppendUint32(b, scope)
}

// parseSockaddr reads what appendSockaddr wrote.
func parseSockaddr(b []byte) (ip netip.Addr, port uint16, ok bool) {
	if len(b) < sockaddrIn4Len {
		return ip, 0, false
	}
	port = binary.BigEndian.Uint16(b[2:])
	switch f := binary.NativeEndian.Uint16(b); {
	case f == familyIn4:
		return netip.AddrFrom4([4]byte(b[4:8])), port, true
	case f == familyIn6 && len(b) >= sockaddrIn6Len:
		ip = netip.AddrFrom16([16]byte(b[8:24]))
		if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 {
			ip = ip.WithZone(strconv.Itoa(int(scope)))
		}
		return ip, port, true
	}
	return ip, 0, false
}

// ResolveSCTPAddr reads "host/host:port" for the network "sctp", "sctp4" or "sctp6"; "" is
// "sctp". IPv6 addresses are in brackets, "[::1]:2905"; ":2905" is a port of all addresses. It
// blocks on the resolver where there are names.
func ResolveSCTPAddr(network, addrs string) (*SCTPAddr, error) {
	resolver, err := resolverNetwork(network)
	if err != nil {
		return nil, err
	}
	hosts := strings.Split(addrs, "/")
	if len(hosts) > maxAddrs {
		return nil, fmt.Errorf("sctp: address of %d hosts: at most %d", len(hosts), maxAddrs)
	}
	a := &SCTPAddr{}
	for i, h := range hosts {
		if last := i == len(hosts)-1; !last {
			h += ":0"
		}
		tcp, err := net.ResolveTCPAddr(resolver, h)
		if err != nil {
			return nil, fmt.Errorf("sctp: address %q: %w", addrs, err)
		}
		a.Port = tcp.Port
		if tcp.IP == nil {
			if len(hosts) > 1 {
				return nil, fmt.Errorf("sctp: address %q: host %d of %d is empty", addrs, i+1, len(hosts))
			}
			break
		}
		a.IPAddrs = append(a.IPAddrs, net.IPAddr{IP: tcp.IP, Zone: tcp.Zone})
	}
	return a, nil
}

func resolverNetwork(network string) (string, error) {
	switch network {
	case "", "sctp":
		return "tcp", nil
	case "sctp4":
		return "tcp4", nil
	case "sctp6":
		return "tcp6", nil
	}
	return "", net.UnknownNetworkError(network)
}

// toNetip converts an address; one without bytes is the unspecified IPv4 address.
func toNetip(a *net.IPAddr) (netip.Addr, error) {
	if len(a.IP) == 0 {
		return netip.IPv4Unspecified(), nil
	}
	ip, ok := netip.AddrFromSlice(a.IP)
	if !ok {
		return ip, fmt.Errorf("sctp: IP address of %d bytes: 4 or 16", len(a.IP))
	}
	return ip.Unmap().WithZone(a.Zone), nil
}

// netips returns the IP addresses of a, which may be nil, and its port. They have to go with
// network.
func (a *SCTPAddr) netips(network string) ([]netip.Addr, uint16, error) {
	if _, err := resolverNetwork(network); err != nil {
		return nil, 0, err
	}
	if a == nil {
		return nil, 0, nil
	}
	if a.Port < 0 || a.Port > 65535 {
		return nil, 0, fmt.Errorf("sctp: port %d: 0 to 65535: %w", a.Port, sctp.ErrAddress)
	}
	if len(a.IPAddrs) > maxAddrs {
		return nil, 0, fmt.Errorf("sctp: %d addresses: at most %d: %w", len(a.IPAddrs), maxAddrs, sctp.ErrAddress)
	}
	var ips []netip.Addr
	for i := range a.IPAddrs {
		ip, err := toNetip(&a.IPAddrs[i])
		if err != nil {
			return nil, 0, fmt.Errorf("%w: %w", err, sctp.ErrAddress)
		}
		if network == "sctp4" && !ip.Is4() || network == "sctp6" && ip.Is4() {
			return nil, 0, fmt.Errorf("sctp: %v is no address of network %s: %w", ip, network, sctp.ErrAddress)
		}
		ips = append(ips, ip)
	}
	return ips, uint16(a.Port), nil
}

// fromAddr returns a without its UDP ports.
func fromAddr(a sctp.Addr) *SCTPAddr {
	s := &SCTPAddr{Port: int(a.Port)}
	for _, ap := range a.Addrs {
		s.IPAddrs = append(s.IPAddrs, net.IPAddr{IP: ap.Addr().AsSlice(), Zone: ap.Addr().Zone()})
	}
	return s
}

// withUDP adds UDP ports to addresses.
func withUDP(ips []netip.Addr, port uint16) []netip.AddrPort {
	list := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		list[i] = netip.AddrPortFrom(ip, port)
	}
	return list
}
