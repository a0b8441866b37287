// Package address has the addresses of the two ends of an association: which of ours are in use,
// and the lists that go into INIT chunks and cookies.
package address

import "net/netip"

const (
	// MaxPeer is how many addresses are taken from one INIT or INIT ACK.
	MaxPeer = 16
	// MaxLocal is how many are listed in our own.
	MaxLocal = 16
)

// List is a bounded list of distinct IP addresses.
type List struct {
	list [MaxPeer]netip.Addr
	n    int
}

// All returns the addresses, which alias the list.
func (l *List) All() []netip.Addr { return l.list[:l.n] }

// Add appends a unless it is there already, unusable, or the list is full.
func (l *List) Add(a netip.Addr) {
	a = a.Unmap()
	if !Usable(a) || l.Contains(a) || l.n == len(l.list) {
		return
	}
	l.list[l.n] = a
	l.n++
}

// Contains reports whether a is in the list.
func (l *List) Contains(a netip.Addr) bool {
	for _, x := range l.list[:l.n] {
		if x == a {
			return true
		}
	}
	return false
}

// Usable reports whether a may be a peer's address: RFC 9260, Section 8.4,
// rule 1, rules out everything but unicast.
func Usable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// Listable returns the addresses of local that can be told to a peer: none if
// a wildcard is among them, because then any address of the host may be used.
func Listable(local []netip.AddrPort) []netip.AddrPort {
	for _, a := range local {
		if !Usable(a.Addr()) {
			return nil
		}
	}
	return local[:min(len(local), MaxLocal)]
}

// Unmap turns an IPv4-mapped IPv6 address into the IPv4 address.
func Unmap(a netip.AddrPort) netip.AddrPort {
	if a.Addr().Is4In6() {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	return a
}
