package address

import "net/netip"

// Reaches reports whether packets to an address of this family can leave: RFC
// 9260, Section 5.1.2, lets us ignore addresses of a family that we do not
// support. An unspecified IPv6 address counts as a dual-stack socket, if it is one of
// UDP.
func (l *Local) Reaches(remote netip.Addr) bool {
	for _, x := range l.InUse {
		if ip := x.Addr(); ip.Is4() == remote.Is4() || ip == netip.IPv6Unspecified() && x.Port() != 0 {
			return true
		}
	}
	return len(l.InUse) == 0
}

// For returns the address by which packets to remote leave: one of
// the same family, and of them one that has the longest prefix in common with
// remote, as it will be on the same network. Path i takes the ith of several, so
// that paths have as little in common as possible (RFC 9260, Section 6.4.1).
func (l *Local) For(i int, remote netip.Addr) netip.AddrPort {
	best, n := -1, 0
	for _, x := range l.InUse {
		if x.Addr().Is4() != remote.Is4() {
			continue
		}
		if c := commonPrefix(x.Addr(), remote); c > best {
			best, n = c, 1
		} else if c == best {
			n++
		}
	}
	if n == 0 {
		if len(l.InUse) > 0 {
			return l.InUse[0] // a dual-stack wildcard, if anything
		}
		return netip.AddrPort{}
	}
	i %= n
	for _, x := range l.InUse {
		if x.Addr().Is4() == remote.Is4() && commonPrefix(x.Addr(), remote) == best {
			if i == 0 {
				return x
			}
			i--
		}
	}
	return netip.AddrPort{}
}

// Other returns an address by which packets to remote may leave other than home: the nth of its
// family, counted around from 1, or home if there is no other.
func (l *Local) Other(home netip.AddrPort, remote netip.Addr, n int) netip.AddrPort {
	for range len(l.InUse) * n {
		for _, x := range l.InUse {
			if x == home || x.Addr().Is4() != remote.Is4() {
				continue
			}
			if n--; n == 0 {
				return x
			}
		}
	}
	return home
}

// commonPrefix returns how many leading bits two addresses of a family share.
func commonPrefix(x, y netip.Addr) int {
	a, b := x.As16(), y.As16()
	n := 0
	for i := range a {
		d := a[i] ^ b[i]
		if d == 0 {
			n += 8
			continue
		}
		for ; d&0x80 == 0; d <<= 1 {
			n++
		}
		break
	}
	return n
}
