package core

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

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
	// mute: all our addresses are being replaced, so nothing may be sent without
	// the ASCONF until the peer has answered.
	mute bool
	// What the peer does not understand (Section 5.1, A9, and 5.3, F3a and F3b).
	noAsconf, noAddrs, noPrimary bool

	in asconfReceiver
}

// openAsconf begins anew: the association was established or restarted. RFC
// 5061, Section 5.1, A2: "The Sequence Number MUST be initialized at the start of
// the association to the same value as the Initial Transmission Sequence Number".
func (a *Assoc) openAsconf(peerTSN TSN) {
	a.failAsconf(ErrRestart)
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

// AddLocalAddr tells the peer of another address of ours (RFC 5061, Section
// 4.2.1). An unspecified IP address stands for the one that the peer sees as
// source of the packet, whatever that is. The result names the request in the
// EventRequestDone that tells the outcome; the address is used from then on.
func (a *Assoc) AddLocalAddr(now Time, addr netip.AddrPort) (uint32, error) {
	addr = unmap(addr)
	if err := a.checkAdd(addr); err != nil {
		return 0, err
	}
	return a.change(now, asconfOp{kind: wire.ParamAddIP, addr: addr}), nil
}

// RemoveLocalAddr takes an address of ours back (RFC 5061, Section 4.2.2). It is
// not used as a source any more at once.
func (a *Assoc) RemoveLocalAddr(now Time, addr netip.AddrPort) (uint32, error) {
	addr = unmap(addr)
	if err := a.checkRemove(addr, 0); err != nil {
		return 0, err
	}
	return a.change(now, asconfOp{kind: wire.ParamDeleteIP, addr: addr}), nil
}

// ReplaceLocalAddr is AddLocalAddr, SetPeerPrimary and RemoveLocalAddr in one
// step. It works even if the old address is our only one and does not any more
// (RFC 5061, Section 5.3.2).
func (a *Assoc) ReplaceLocalAddr(now Time, from, to netip.AddrPort) (uint32, error) {
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
func (a *Assoc) SetPeerPrimary(now Time, addr netip.AddrPort) (uint32, error) {
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
		return ErrNotSupported
	case len(a.asc.queue)+maxAsconfOps > maxAsconfQueue:
		return ErrBusy
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
		return ErrTooMany
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
func (a *Assoc) change(now Time, ops ...asconfOp) uint32 {
	r := &asconfReq{id: a.reqs.next(), left: len(ops)}
	for _, op := range ops {
		op.req = r
		a.asc.queue = append(a.asc.queue, op)
	}
	a.beginAsconf()
	return r.id
}

// beginAsconf makes an ASCONF chunk of the changes that wait, if none is
// outstanding (RFC 5061, Section 5.1, A1 to A3).
func (a *Assoc) beginAsconf() {
	s := &a.asc
	if len(s.chunk) > 0 || len(s.queue) == 0 || !a.state.canSendData() {
		return
	}
	n := 0
	for n < len(s.queue) {
		same := n + 1
		for same < len(s.queue) && s.queue[same].req == s.queue[n].req {
			same++
		}
		if same > maxAsconfOps {
			break
		}
		n = same
	}
	ops := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	x := wire.Asconf{Seq: s.nextSeq, Addr: a.knownAddr()}
	left := len(a.local)
	for _, op := range ops {
		switch op.kind {
		case wire.ParamAddIP:
			if !op.addr.Addr().IsUnspecified() {
				left++
			}
		case wire.ParamDeleteIP:
			// F5; what was to come in its place may have been refused meanwhile.
			if left <= 1 {
				a.opDone(op, ErrLastAddr)
				continue
			}
			left--
			// F4: the address "MUST NOT be used as a source address for any
			// subsequent packets".
			s.leaving = append(s.leaving, op.addr)
			a.local = slices.DeleteFunc(a.local, func(l netip.AddrPort) bool { return l == op.addr })
		}
		op.corr = s.corr
		s.corr++
		x.Params = wire.AppendAsconfRequest(x.Params, wire.AsconfRequest{Type: op.kind, ID: op.corr, Addr: op.addr.Addr()})
		s.ops = append(s.ops, op)
	}
	if len(s.ops) == 0 {
		a.beginAsconf()
		return
	}
	s.nextSeq++
	s.mute = len(a.local) == 0
	a.rehome(false)
	s.chunk = wire.AppendAsconf(s.chunk[:0], x)
	s.send, s.tries, s.path = true, 0, a.dataPath()
}

// knownAddr returns an address of ours that the peer knows, so that it can find
// the association by it; an invalid one if we do not know what it sees.
func (a *Assoc) knownAddr() netip.Addr {
	for _, l := range a.local {
		if usableAddr(l.Addr()) {
			return l.Addr()
		}
	}
	return netip.Addr{}
}

// asconfDue reports whether the ASCONF chunk goes with the next packet to path i.
func (a *Assoc) asconfDue(i int) bool { return a.asc.send && a.asc.path == i }

// asconfPath returns the path that an ASCONF is to go to now.
func (a *Assoc) asconfPath() (int, bool) {
	if len(a.asc.queue) > 0 {
		a.beginAsconf()
	}
	if a.asc.send && !a.asconfTo(a.asc.path) {
		a.asc.path = a.dataPath() // the old one is worse than it was
	}
	return a.asc.path, a.asc.send
}

// asconfTo reports whether an ASCONF may go to path i. It may go to an address
// that is not confirmed only if none is: both ends may be changing all their
// addresses at the same time.
func (a *Assoc) asconfTo(i int) bool {
	return a.paths[i].confirmed || i == a.dataPath() || a.asc.mute
}

// answerMuted has the ASCONF sent again where an ASCONF-ACK is to go, which may
// not go alone now: both ends may be changing all their addresses. It reports
// false if there is none.
func (a *Assoc) answerMuted() bool {
	i, ok := a.ctl.pathOf(wire.ChunkAsconfAck)
	if ok {
		a.asc.send, a.asc.path = true, i
	}
	return ok
}

// appendAsconf appends the outstanding ASCONF, if it is to go to path i.
func (a *Assoc) appendAsconf(b []byte, now Time, i, room int) []byte {
	s := &a.asc
	if !a.asconfDue(i) || len(s.chunk) > room || !a.asconfTo(i) {
		return b
	}
	s.send, s.sent = false, true
	a.timers.set(timerT4, now+a.paths[i].rto.Value()) // A4
	a.paths[i].lastSent = now
	return append(b, s.chunk...)
}

// asconfSource returns the local address to send an ASCONF from, if it is not
// the usual one of the path: F6, none that is being deleted; and F1, a new one
// only for this. It takes turns, because either may be of no use.
func (a *Assoc) asconfSource(i int) (netip.AddrPort, bool) {
	s := &a.asc
	if !s.mute && s.tries%2 == 0 {
		return netip.AddrPort{}, false
	}
	v4 := a.paths[i].Remote.Addr().Is4()
	for _, op := range s.ops {
		if ip := op.addr.Addr(); op.kind == wire.ParamAddIP && !ip.IsUnspecified() && ip.Is4() == v4 {
			return op.addr, true
		}
	}
	return netip.AddrPort{}, false
}

// t4Timeout sends the ASCONF again, unchanged (RFC 5061, Section 5.1, B1 to B5).
func (a *Assoc) t4Timeout() {
	s := &a.asc
	if len(s.chunk) == 0 || !a.state.connected() || a.state == ShutdownAckSent { // C4
		return
	}
	a.stats.Timeouts++
	a.paths[s.path].rto.Backoff()
	if !a.pathError(s.path, true) {
		return
	}
	if s.tries++; s.tries%2 == 0 {
		s.path = a.otherPath(s.path)
	}
	if !a.asconfTo(s.path) {
		s.path = a.dataPath()
	}
	s.send = true
}

// handleAsconfAck takes in an ASCONF-ACK (RFC 5061, Section 5.1, A5 to A8).
func (a *Assoc) handleAsconfAck(c wire.Chunk) {
	s := &a.asc
	x, err := wire.ParseAsconfAck(c)
	if err != nil {
		return
	}
	// F0: an ASCONF-ACK "that is greater than or equal to the next Sequence
	// Number to be used": abort; one of before is ignored.
	if !TSN(x.Seq).Less(TSN(s.nextSeq)) {
		a.abort(wire.AppendIllegalAsconfAck(nil))
		return
	}
	if len(s.chunk) == 0 || x.Seq != s.nextSeq-1 {
		return
	}
	outcome, ok := s.outcomes(x.Params)
	if !ok {
		return
	}
	a.timers.set(timerT4, 0)
	a.errors = 0
	a.pathAlive(s.path)
	ops := s.ops
	s.ops, s.chunk, s.send, s.mute = nil, s.chunk[:0], false, false
	added := false
	for i, op := range ops {
		added = a.applyOp(op, outcome[i]) || added
	}
	s.leaving = s.leaving[:0]
	a.rehome(added)
	for i, op := range ops {
		a.opDone(op, outcome[i])
	}
	a.beginAsconf()
}

// outcomes returns the error, or nil, of each of the outstanding changes. A7:
// "all TLVs with no response before the failed TLV are considered successful if
// not reported. All TLVs after the failed response are considered unsuccessful
// unless a specific success indication is present".
func (s *asconf) outcomes(params []byte) ([]error, bool) {
	list := make([]error, len(s.ops))
	told := make([]bool, len(s.ops))
	it := wire.NewParams(params)
	for it.Next() {
		p := it.Param()
		var id uint32
		var err error
		switch p.Type {
		case wire.ParamSuccess:
			var bad error
			if id, bad = wire.ParseAsconfSuccess(p); bad != nil {
				return nil, false
			}
		case wire.ParamErrorCause:
			x, bad := wire.ParseAsconfError(p)
			if bad != nil {
				return nil, false
			}
			id, err = x.ID, s.refusal(x)
		default:
			continue
		}
		for i := range s.ops {
			if s.ops[i].corr == id {
				list[i], told[i] = err, true
			}
		}
	}
	if it.Err() != nil {
		return nil, false
	}
	failed := false
	for i := range list {
		if failed && !told[i] {
			list[i] = ErrDenied
		}
		failed = failed || list[i] != nil
	}
	return list, true
}

// refusal returns the error that an Error Cause Indication means.
func (s *asconf) refusal(x wire.AsconfError) error {
	it := wire.NewCauses(x.Causes)
	if !it.Next() {
		return ErrDenied
	}
	switch code := it.Cause().Code; code {
	case wire.CauseUnrecognizedParams:
		for _, op := range s.ops {
			if op.corr == x.ID {
				s.noPrimary = s.noPrimary || op.kind == wire.ParamSetPrimary // F3b
				s.noAddrs = s.noAddrs || op.kind != wire.ParamSetPrimary     // F3a
			}
		}
		return ErrNotSupported
	default:
		return fmt.Errorf("%w: %v", ErrDenied, code)
	}
}

// applyOp does what the outcome of a change means for our addresses. It reports
// whether there is a new one.
func (a *Assoc) applyOp(op asconfOp, err error) bool {
	switch {
	case op.kind == wire.ParamAddIP && err == nil:
		// F2: it "MAY begin using the added IP address as a source address".
		if !op.addr.Addr().IsUnspecified() && !a.hasLocal(op.addr.Addr()) {
			a.local = append(a.local, op.addr)
			return true
		}
	case op.kind == wire.ParamDeleteIP && err != nil:
		a.local = append(a.local, op.addr)
	}
	return false
}

// asconfUnknown ends the use of ASCONF: A9, the peer "did not recognize the
// ASCONF Chunk Type".
func (a *Assoc) asconfUnknown() {
	a.asc.noAsconf = true
	a.failAsconf(ErrNotSupported)
	a.rehome(false)
}

// rehome gives paths whose local address is gone another one; with spread set it
// also lets those that are not the primary one use what is new.
func (a *Assoc) rehome(spread bool) {
	for i := range a.paths {
		p := &a.paths[i]
		if p.gone || len(a.local) == 0 {
			continue
		}
		lost := slices.Contains(a.asc.leaving, p.home) || !a.anyLocal() && !slices.Contains(a.local, p.home)
		if lost || spread && i != a.primary {
			p.home = a.localFor(i, p.Remote.Addr())
		}
		p.Local = p.home
	}
}

// anyLocal reports whether a socket is bound to no particular address, so that
// any may be in use.
func (a *Assoc) anyLocal() bool {
	return slices.ContainsFunc(a.local, func(l netip.AddrPort) bool { return !usableAddr(l.Addr()) })
}
