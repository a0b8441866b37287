package asconf

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// Errors of address changes.
var (
	// ErrLastAddr is returned for the removal of the last local address (RFC
	// 5061, Section 5.3, F5).
	ErrLastAddr = errors.New("core: last address")
	// ErrLocalAddr is returned for a local address that the association has
	// already, or that it has not.
	ErrLocalAddr = errors.New("core: wrong local address")
)

// change is one change of an address of ours.
type change struct {
	kind wire.ParamType // ParamAddIP, ParamDeleteIP or ParamSetPrimary
	addr netip.AddrPort
	corr uint32 // correlation ID
	req  *request
}

// request is a request of the user's: one change or several that belong together.
type request struct {
	id   uint32
	left int
	err  error
}

// Add tells the peer of another address of ours (RFC 5061, Section 4.2.1). An unspecified IP address
// stands for the one that the peer sees as source of the packet, whatever that is. The result names
// the request; the address is used from its success on.
func (s *Sender) Add(addr netip.AddrPort) (uint32, error) {
	addr = address.Unmap(addr)
	if err := s.checkAdd(addr); err != nil {
		return 0, err
	}
	return s.ask(change{kind: wire.ParamAddIP, addr: addr}), nil
}

// Remove takes an address of ours back (RFC 5061, Section 4.2.2). It is not used as a source any
// more at once.
func (s *Sender) Remove(addr netip.AddrPort) (uint32, error) {
	addr = address.Unmap(addr)
	if err := s.checkRemove(addr, 0); err != nil {
		return 0, err
	}
	return s.ask(change{kind: wire.ParamDeleteIP, addr: addr}), nil
}

// Replace is Add, SetPrimary and Remove in one step. It works even if the old address is our only one
// and does not any more (RFC 5061, Section 5.3.2).
func (s *Sender) Replace(from, to netip.AddrPort) (uint32, error) {
	from, to = address.Unmap(from), address.Unmap(to)
	if err := s.checkAdd(to); err != nil {
		return 0, err
	}
	if err := s.checkRemove(from, 1); err != nil {
		return 0, err
	}
	return s.ask(change{kind: wire.ParamAddIP, addr: to}, change{kind: wire.ParamSetPrimary, addr: to},
		change{kind: wire.ParamDeleteIP, addr: from}), nil
}

// SetPrimary asks the peer to send to an address of ours (RFC 5061, Section 4.2.4), which for an
// unspecified one is the source of the packet.
func (s *Sender) SetPrimary(addr netip.AddrPort) (uint32, error) {
	addr = address.Unmap(addr)
	if err := s.check(s.noPrimary); err != nil {
		return 0, err
	}
	if !addr.Addr().IsUnspecified() && !s.local.Has(addr.Addr()) && !s.pending(wire.ParamAddIP, addr) {
		return 0, ErrLocalAddr
	}
	return s.ask(change{kind: wire.ParamSetPrimary, addr: addr}), nil
}

// check returns why the user cannot ask for a change; unknown tells that the peer did not understand
// this kind before.
func (s *Sender) check(unknown bool) error {
	switch {
	case s.noAsconf || unknown:
		return requests.ErrNotSupported
	case len(s.queue)+MaxChanges > MaxQueue:
		return requests.ErrBusy
	}
	return nil
}

func (s *Sender) checkAdd(addr netip.AddrPort) error {
	if err := s.check(s.noAddrs); err != nil {
		return err
	}
	switch ip := addr.Addr(); {
	case ip.IsUnspecified():
	case !address.Usable(ip), s.local.Has(ip), s.pending(wire.ParamAddIP, addr):
		return ErrLocalAddr
	case len(s.local.InUse)+s.count(wire.ParamAddIP) >= address.MaxLocal:
		return requests.ErrTooMany
	}
	return nil
}

// checkRemove checks a removal that comes with so many additions.
func (s *Sender) checkRemove(addr netip.AddrPort, added int) error {
	if err := s.check(s.noAddrs); err != nil {
		return err
	}
	switch {
	case !slices.Contains(s.local.InUse, addr) || s.pending(wire.ParamDeleteIP, addr):
		return ErrLocalAddr
	case len(s.local.InUse)+added+s.count(wire.ParamAddIP)-countKind(s.queue, wire.ParamDeleteIP) <= 1:
		return ErrLastAddr
	}
	return nil
}

// pending reports whether a change is queued or outstanding.
func (s *Sender) pending(kind wire.ParamType, addr netip.AddrPort) bool {
	same := func(c change) bool { return c.kind == kind && c.addr.Addr() == addr.Addr() }
	return slices.ContainsFunc(s.queue, same) || slices.ContainsFunc(s.changes, same)
}

// count counts the changes of a kind that are queued or outstanding.
func (s *Sender) count(kind wire.ParamType) int {
	return countKind(s.queue, kind) + countKind(s.changes, kind)
}

func countKind(list []change, kind wire.ParamType) (n int) {
	for _, c := range list {
		if c.kind == kind {
			n++
		}
	}
	return n
}

// ask queues changes that belong together.
func (s *Sender) ask(list ...change) uint32 {
	r := &request{id: s.numbers.Next(), left: len(list)}
	for _, c := range list {
		c.req = r
		s.queue = append(s.queue, c)
	}
	s.Begin()
	return r.id
}

// Follow asks the peer for the changes after which want are our addresses: additions, removals, and a
// move if none of them is in use yet. It reports whether there is nothing left to ask for, which is also
// so if the association cannot change its addresses; else it is to be called again later. It calls begin
// before it asks for anything.
func (s *Sender) Follow(want []netip.AddrPort, begin func()) (done bool) {
	switch err := s.check(s.noAddrs); {
	case err == requests.ErrBusy || s.Pending() > 0:
		return false
	case err != nil || s.local.Any():
		return true
	}
	var add, keep, remove []netip.AddrPort
	for _, w := range want {
		if w = address.Unmap(w); slices.Contains(s.local.InUse, w) {
			keep = append(keep, w)
		} else {
			add = append(add, w)
		}
	}
	for _, l := range s.local.InUse {
		if !slices.Contains(keep, l) {
			remove = append(remove, l)
		}
	}
	if len(add)+len(remove) > 0 {
		begin()
	}
	if len(keep) == 0 && len(add) > 0 && len(remove) > 0 {
		return s.move(add, remove)
	}
	later := false
	for _, x := range add {
		_, err := s.Add(x)
		later = later || err == requests.ErrBusy || err == requests.ErrTooMany && len(remove) > 0
	}
	for _, x := range remove {
		_, err := s.Remove(x)
		later = later || err == requests.ErrBusy
	}
	return !later
}

// move replaces all our addresses by those to be added. RFC 5061, Section 5.3.2: none of the old ones
// may work any more, so that it has to be one step. First comes one of the same family: the peer may
// have no other.
func (s *Sender) move(add, remove []netip.AddrPort) (done bool) {
	to := max(slices.IndexFunc(add, func(x netip.AddrPort) bool { return x.Addr().Is4() == remove[0].Addr().Is4() }), 0)
	if s.checkAdd(add[to]) != nil {
		return true
	}
	list := []change{{kind: wire.ParamAddIP, addr: add[to]}, {kind: wire.ParamSetPrimary, addr: add[to]}}
	n := min(len(remove), MaxChanges-len(list))
	for _, x := range remove[:n] {
		list = append(list, change{kind: wire.ParamDeleteIP, addr: x})
	}
	s.ask(list...)
	return len(add) == 1 && n == len(remove) // the rest later
}
