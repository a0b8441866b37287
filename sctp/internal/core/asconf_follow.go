package core

import (
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// probeAll has a heartbeat sent to each address of the peer.
func (a *Assoc) probeAll() {
	for i := range a.paths {
		if p := &a.paths[i]; !p.gone && a.state.heartbeating() {
			p.hb.pending = true
			a.slow |= slowHeartbeat
		}
	}
}

// FollowLocalAddrs asks the peer for the changes after which want are our addresses:
// additions, removals, and a move if none of them is in use yet. It reports whether
// there is nothing left to ask for, which is also so if the association cannot
// change its addresses; else it is to be called again later.
func (a *Assoc) FollowLocalAddrs(now clock.Time, want []netip.AddrPort) (done bool) {
	switch err := a.checkChange(a.asc.noAddrs); {
	case err == requests.ErrBusy || a.state < Established || len(a.asc.queue)+len(a.asc.ops) > 0:
		return false
	case err != nil || a.anyLocal():
		return true
	}
	var add, keep, remove []netip.AddrPort
	for _, w := range want {
		if w = unmap(w); slices.Contains(a.local, w) {
			keep = append(keep, w)
		} else {
			add = append(add, w)
		}
	}
	for _, l := range a.local {
		if !slices.Contains(keep, l) {
			remove = append(remove, l)
		}
	}
	if len(add)+len(remove) > 0 {
		a.probeAll() // what did not work before may now, and the other way round
	}
	if len(keep) == 0 && len(add) > 0 && len(remove) > 0 {
		// RFC 5061, Section 5.3.2: none of the old ones may work any more, so that it
		// has to be one step. First one of the same family: the peer may have no other.
		to := max(slices.IndexFunc(add, func(x netip.AddrPort) bool { return x.Addr().Is4() == remove[0].Addr().Is4() }), 0)
		if a.checkAdd(add[to]) != nil {
			return true
		}
		ops := []asconfOp{{kind: wire.ParamAddIP, addr: add[to]}, {kind: wire.ParamSetPrimary, addr: add[to]}}
		n := min(len(remove), maxAsconfOps-len(ops))
		for _, x := range remove[:n] {
			ops = append(ops, asconfOp{kind: wire.ParamDeleteIP, addr: x})
		}
		a.change(now, ops...)
		return len(add) == 1 && n == len(remove) // the rest later
	}
	later := false
	for _, x := range add {
		_, err := a.AddLocalAddr(now, x)
		later = later || err == requests.ErrBusy || err == requests.ErrTooMany && len(remove) > 0
	}
	for _, x := range remove {
		_, err := a.RemoveLocalAddr(now, x)
		later = later || err == requests.ErrBusy
	}
	return !later
}
