package core

import (
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// asconfOp is one change of an address of ours.
type asconfOp struct {
	kind wire.ParamType // ParamAddIP, ParamDeleteIP or ParamSetPrimary
	addr netip.AddrPort
	corr uint32 // correlation ID
	req  *asconfReq
}

// asconfReq is a request of the user's: one change or several that belong
// together.
type asconfReq struct {
	id   uint32
	left int
	err  error
}

// AddLocalAddr tells the peer of another address of ours (RFC 5061, Section
// 4.2.1). An unspecified IP address stands for the one that the peer sees as
// source of the packet, whatever that is. The result names the request in the
// EventRequestDone that tells the outcome; the address is used from then on.
func (a *Assoc) AddLocalAddr(now clock.Time, addr netip.AddrPort) (uint32, error) {
	addr = unmap(addr)
	if err := a.checkAdd(addr); err != nil {
		return 0, err
	}
	return a.change(now, asconfOp{kind: wire.ParamAddIP, addr: addr}), nil
}

// RemoveLocalAddr takes an address of ours back (RFC 5061, Section 4.2.2). It is
// not used as a source any more at once.
func (a *Assoc) RemoveLocalAddr(now clock.Time, addr netip.AddrPort) (uint32, error) {
	addr = unmap(addr)
	if err := a.checkRemove(addr, 0); err != nil {
		return 0, err
	}
	return a.change(now, asconfOp{kind: wire.ParamDeleteIP, addr: addr}), nil
}

// ReplaceLocalAddr is AddLocalAddr, SetPeerPrimary and RemoveLocalAddr in one
// step. It works even if the old address is our only one and does not any more
// (RFC 5061, Section 5.3.2).
func (a *Assoc) ReplaceLocalAddr(now clock.Time, from, to netip.AddrPort) (uint32, error) {
	from, to = unmap(from), unmap(to)
	if err := a.checkAdd(to); err != nil {
		return 0, err
	}
	if err := a.checkRemove(from, 1); err != nil {
		return 0, err
	}
	return a.change(now, asconfOp{kind: wire.ParamAddIP, addr: to}, asconfOp{kind: wire.ParamSetPrimary, addr: to},
		asconfOp{kind: wire.ParamDeleteIP, addr: from}), nil
}

// SetPeerPrimary asks the peer to send to an address of ours (RFC 5061, Section
// 4.2.4), which for an unspecified one is the source of the packet.
func (a *Assoc) SetPeerPrimary(now clock.Time, addr netip.AddrPort) (uint32, error) {
	addr = unmap(addr)
	if err := a.checkChange(a.asc.noPrimary); err != nil {
		return 0, err
	}
	if !addr.Addr().IsUnspecified() && !a.hasLocal(addr.Addr()) && !a.pending(wire.ParamAddIP, addr) {
		return 0, ErrLocalAddr
	}
	return a.change(now, asconfOp{kind: wire.ParamSetPrimary, addr: addr}), nil
}

// checkChange returns why the user cannot ask for a change; unknown tells that
// the peer did not understand this kind before.
func (a *Assoc) checkChange(unknown bool) error {
	switch {
	case a.state == Closed:
		return ErrClosed
	case a.state > Established:
		return ErrShutdown
	case a.state != Established || !a.peer.features.has(featAsconf) || a.asc.noAsconf || unknown:
		return requests.ErrNotSupported
	case len(a.asc.queue)+maxAsconfOps > maxAsconfQueue:
		return requests.ErrBusy
	}
	return nil
}

func (a *Assoc) checkAdd(addr netip.AddrPort) error {
	if err := a.checkChange(a.asc.noAddrs); err != nil {
		return err
	}
	switch ip := addr.Addr(); {
	case ip.IsUnspecified():
	case !usableAddr(ip), a.hasLocal(ip), a.pending(wire.ParamAddIP, addr):
		return ErrLocalAddr
	case len(a.local)+a.count(wire.ParamAddIP) >= MaxLocalAddrs:
		return requests.ErrTooMany
	}
	return nil
}

// checkRemove checks a removal that comes with so many additions.
func (a *Assoc) checkRemove(addr netip.AddrPort, added int) error {
	if err := a.checkChange(a.asc.noAddrs); err != nil {
		return err
	}
	switch {
	case !slices.Contains(a.local, addr) || a.pending(wire.ParamDeleteIP, addr):
		return ErrLocalAddr
	case len(a.local)+added+a.count(wire.ParamAddIP)-a.queued(wire.ParamDeleteIP) <= 1:
		return ErrLastAddr
	}
	return nil
}

func (a *Assoc) hasLocal(ip netip.Addr) bool {
	return slices.ContainsFunc(a.local, func(l netip.AddrPort) bool { return l.Addr() == ip })
}

// pending reports whether a change is queued or outstanding.
func (a *Assoc) pending(kind wire.ParamType, addr netip.AddrPort) bool {
	same := func(op asconfOp) bool { return op.kind == kind && op.addr.Addr() == addr.Addr() }
	return slices.ContainsFunc(a.asc.queue, same) || slices.ContainsFunc(a.asc.ops, same)
}

// queued counts the changes of a kind that were not sent, count all.
func (a *Assoc) queued(kind wire.ParamType) (n int) {
	for _, op := range a.asc.queue {
		if op.kind == kind {
			n++
		}
	}
	return n
}

func (a *Assoc) count(kind wire.ParamType) int {
	n := a.queued(kind)
	for _, op := range a.asc.ops {
		if op.kind == kind {
			n++
		}
	}
	return n
}

// change queues changes that belong together.
func (a *Assoc) change(now clock.Time, ops ...asconfOp) uint32 {
	r := &asconfReq{id: a.reqs.Next(), left: len(ops)}
	for _, op := range ops {
		op.req = r
		a.asc.queue = append(a.asc.queue, op)
	}
	a.slow |= slowAsconf
	a.beginAsconf()
	return r.id
}
