package core

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// Limits of address changes.
const (
	// maxAsconfOps is how many changes one ASCONF carries; with their addresses
	// they fit the smallest packet, an AUTH chunk besides.
	maxAsconfOps = 8
	// maxAsconfQueue bounds the changes of the user that wait.
	maxAsconfQueue = 64
	// maxAsconfAcks is how many answers are kept for retransmissions.
	maxAsconfAcks = 8
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

// asconf is the change of addresses (RFC 5061): ours, by ASCONF chunks of which
// one is outstanding at a time, and the answers to the peer's.
type asconf struct {
	nextSeq uint32
	corr    uint32
	queue   []asconfOp
	ops     []asconfOp // of the outstanding chunk
	chunk   []byte     // that chunk; empty: none is outstanding
	send    bool       // chunk is to be sent
	sent    bool       // it is in the packet being built
	tries   int        // expirations of T4 in a row
	path    int        // where chunk goes
	leaving []netip.AddrPort
	// pruned: an address of ours was removed, so that packets may come to one that
	// is not ours any more. The addresses in late still take them for a while.
	pruned bool
	late   []lateAddr
	// mute: all our addresses are being replaced, so nothing may be sent without
	// the ASCONF until the peer has answered.
	mute bool
	// What the peer does not understand (Section 5.1, A9, and 5.3, F3a and F3b).
	noAsconf, noAddrs, noPrimary bool

	in asconfReceiver
}

// lateAddr is an address that was removed, and takes packets until a time.
type lateAddr struct {
	ip    netip.Addr
	until clock.Time
}

// maxLateAddrs bounds the removed addresses that still take packets.
const maxLateAddrs = 8

// openAsconf begins anew: the association was established or restarted. RFC
// 5061, Section 5.1, A2: "The Sequence Number MUST be initialized at the start of
// the association to the same value as the Initial Transmission Sequence Number".
func (a *Assoc) openAsconf(peerTSN seq.TSN) {
	a.failAsconf(tx.ErrRestart)
	a.asc = asconf{nextSeq: uint32(a.tsn), in: asconfReceiver{seq: uint32(peerTSN) - 1}}
}

// failAsconf ends all requests; addresses on their way out are in use again.
func (a *Assoc) failAsconf(err error) {
	s := &a.asc
	for _, op := range slices.Concat(s.ops, s.queue) {
		a.opDone(op, err)
	}
	a.local = append(a.local, s.leaving...)
	s.ops, s.queue, s.leaving, s.chunk, s.send, s.mute = nil, nil, nil, nil, false, false
	a.timers.set(timerT4, 0)
}

// ownAddrs returns our addresses as an INIT ACK tells them to a peer that begins
// anew, and as they are when it has: no removal is outstanding then, and the
// address that its packets come to is one, though it may have been removed: the
// peer knows it.
func (a *Assoc) ownAddrs(at netip.AddrPort) []netip.AddrPort {
	list := slices.Concat(a.local, a.asc.leaving)
	same := func(l netip.AddrPort) bool { return l.Addr() == at.Addr() }
	if usableAddr(at.Addr()) && len(listable(list)) > 0 && !slices.ContainsFunc(list, same) {
		list = slices.Insert(list, 0, at)
	}
	return list[:min(len(list), MaxLocalAddrs)]
}

// opDone notes the outcome of a change.
func (a *Assoc) opDone(op asconfOp, err error) {
	r := op.req
	if r.err == nil {
		r.err = err
	}
	if r.left--; r.left == 0 {
		a.requestDone(r.id, r.err)
	}
}

// rehome gives paths whose local address is gone another one; with spread set it
// also lets those that are not the primary one use what is new.
func (a *Assoc) rehome(spread bool) {
	for i := range a.paths {
		p := &a.paths[i]
		if p.gone || len(a.local) == 0 {
			continue
		}
		if !a.sendsFrom(p.home) || spread && i != a.primary {
			p.setHome(a.localFor(i, p.Remote.Addr()))
		}
		p.Local = p.home
	}
}

// sendsFrom reports whether packets may leave from l: RFC 5061, Section 5.3, F4,
// it is not being removed, and was not.
func (a *Assoc) sendsFrom(l netip.AddrPort) bool {
	return !slices.Contains(a.asc.leaving, l) && (a.anyLocal() || slices.Contains(a.local, l))
}

// anyLocal reports whether a socket is bound to no particular address, so that
// any may be in use.
func (a *Assoc) anyLocal() bool {
	return slices.ContainsFunc(a.local, func(l netip.AddrPort) bool { return !usableAddr(l.Addr()) })
}

// dropLocal notes that the peer has removed ip, an address of ours, which packets
// may still be on their way to: RFC 5061, Section 5.3, F14: "If the endpoint elects
// to hold the IP address valid for a period of time, it MUST NOT hold it valid
// longer than 2 RTO intervals".
func (a *Assoc) dropLocal(now clock.Time, ip netip.Addr) {
	s := &a.asc
	s.pruned = true
	if len(s.late) == maxLateAddrs {
		s.late = slices.Delete(s.late, 0, 1)
	}
	s.late = append(s.late, lateAddr{ip, now + 2*a.paths[s.path].rto.Value()})
}

// takesAt reports whether packets to ip belong to the association, some of whose
// addresses were removed.
func (a *Assoc) takesAt(now clock.Time, ip netip.Addr) bool {
	s := &a.asc
	same := func(l netip.AddrPort) bool { return l.Addr() == ip }
	if !usableAddr(ip) || a.anyLocal() || a.hasLocal(ip) || slices.ContainsFunc(s.leaving, same) {
		return true
	}
	for _, l := range s.late {
		if l.ip == ip && now < l.until {
			return true
		}
	}
	// Section 5.3, F14: while it is being added, data to an address "MUST NOT"
	// be treated as out of the blue. A wildcard may stand for any.
	for _, op := range s.ops {
		if op.kind == wire.ParamAddIP && (op.addr.Addr() == ip || op.addr.Addr().IsUnspecified()) {
			return true
		}
	}
	for i := range a.paths {
		if p := &a.paths[i]; !p.gone && (same(p.home) || same(p.Local)) {
			return true
		}
	}
	return false
}
