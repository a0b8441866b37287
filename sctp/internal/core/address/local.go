package address

import (
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// MaxLate bounds the removed addresses that still take packets.
const MaxLate = 8

// Local is the addresses of our end of an association.
type Local struct {
	// InUse are those that packets may leave from.
	InUse []netip.AddrPort
	// leaving are those that the peer was asked to remove, late the last ones that
	// it has removed, which still take packets for a while. They are not in use.
	leaving []netip.AddrPort
	late    []lateAddr
}

// lateAddr is an address that was removed, and takes packets until a time.
type lateAddr struct {
	ip    netip.Addr
	until clock.Time
}

// NewLocal returns a record of addresses that are all in use.
func NewLocal(list []netip.AddrPort) Local {
	l := Local{InUse: slices.Clone(list)}
	for i, x := range l.InUse {
		l.InUse[i] = Unmap(x)
	}
	return l
}

// Has reports whether ip is in use.
func (l *Local) Has(ip netip.Addr) bool { return hasIP(l.InUse, ip) }

// Leaving reports whether the peer was asked to remove ip.
func (l *Local) Leaving(ip netip.Addr) bool { return hasIP(l.leaving, ip) }

func hasIP(list []netip.AddrPort, ip netip.Addr) bool {
	return slices.ContainsFunc(list, func(x netip.AddrPort) bool { return x.Addr() == ip })
}

// Any reports whether a socket is bound to no particular address, so that any may be in use.
func (l *Local) Any() bool {
	return slices.ContainsFunc(l.InUse, func(x netip.AddrPort) bool { return !Usable(x.Addr()) })
}

// SendsFrom reports whether packets may leave from x: RFC 5061, Section 5.3, F4, it is not being
// removed, and was not.
func (l *Local) SendsFrom(x netip.AddrPort) bool {
	return !slices.Contains(l.leaving, x) && (l.Any() || slices.Contains(l.InUse, x))
}

// Known returns an address that the peer knows, so that it can find the association by it; an
// invalid one if we do not know what it sees.
func (l *Local) Known() netip.Addr {
	for _, x := range l.InUse {
		if Usable(x.Addr()) {
			return x.Addr()
		}
	}
	return netip.Addr{}
}

// ForRestart returns the addresses as an INIT ACK tells them to a peer that begins anew, and as
// they are when it has: no removal is outstanding then, and the address that its packets come to
// is one, though it may have been removed: the peer knows it.
func (l *Local) ForRestart(at netip.AddrPort) []netip.AddrPort {
	list := slices.Concat(l.InUse, l.leaving)
	if Usable(at.Addr()) && len(Listable(list)) > 0 && !hasIP(list, at.Addr()) {
		list = slices.Insert(list, 0, at)
	}
	return list[:min(len(list), MaxLocal)]
}

// Restarted makes list what is in use. None is leaving, and none was removed.
func (l *Local) Restarted(list []netip.AddrPort) { *l = Local{InUse: list} }

// Add has packets leave from x, too.
func (l *Local) Add(x netip.AddrPort) { l.InUse = append(l.InUse, x) }

// Leave takes x out of use while the peer is asked to remove it: it "MUST NOT be used as a source
// address for any subsequent packets" (RFC 5061, Section 5.3, F4).
func (l *Local) Leave(x netip.AddrPort) {
	l.leaving = append(l.leaving, x)
	l.InUse = slices.DeleteFunc(l.InUse, func(y netip.AddrPort) bool { return y == x })
}

// Stay takes x into use again: the peer did not remove it.
func (l *Local) Stay(x netip.AddrPort) {
	l.Add(x)
	l.left(x)
}

// Remove notes that the peer has removed x, which packets may still be on their way to. RFC 5061,
// Section 5.3, F14: "If the endpoint elects to hold the IP address valid for a period of time, it
// MUST NOT hold it valid longer than 2 RTO intervals".
func (l *Local) Remove(x netip.AddrPort, until clock.Time) {
	l.left(x)
	if len(l.late) == MaxLate {
		l.late = slices.Delete(l.late, 0, 1)
	}
	l.late = append(l.late, lateAddr{x.Addr(), until})
}

func (l *Local) left(x netip.AddrPort) {
	l.leaving = slices.DeleteFunc(l.leaving, func(y netip.AddrPort) bool { return y == x })
}

// Removed reports whether the peer has removed an address, so that packets may come to one that is
// not ours any more: Takes decides about packets then.
func (l *Local) Removed() bool { return len(l.late) > 0 }

// Takes reports whether packets to ip belong to the association.
func (l *Local) Takes(now clock.Time, ip netip.Addr) bool {
	if !Usable(ip) || l.Any() || l.Has(ip) || l.Leaving(ip) {
		return true
	}
	return slices.ContainsFunc(l.late, func(x lateAddr) bool { return x.ip == ip && now < x.until })
}
