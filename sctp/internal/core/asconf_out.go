package core

import (
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

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

// answerMuted has the ASCONF sent again where the answer to an ASCONF or a
// HEARTBEAT is to go, which may not go alone now: both ends may be changing all
// their addresses, and a peer that verifies our new one waits no longer than its
// RTO. It reports false if there is no answer that fits beside the ASCONF.
func (a *Assoc) answerMuted() bool {
	q := &a.ctl
	for k := range q.n {
		r := &q.list[k]
		t := wire.ChunkType(r.chunk[0])
		if t != wire.ChunkAsconfAck && t != wire.ChunkHeartbeatAck || r.path >= len(a.paths) {
			continue
		}
		if wire.HeaderLen+a.auth.ChunkLen()+len(a.asc.chunk)+len(r.chunk) <= a.paths[r.path].mtu {
			a.asc.send, a.asc.path = true, r.path
			return true
		}
	}
	return false
}

// appendAsconf appends the outstanding ASCONF, if it is to go to path i.
func (a *Assoc) appendAsconf(b []byte, now clock.Time, i, room int) []byte {
	s := &a.asc
	if !a.asconfDue(i) || len(s.chunk) > room || !a.asconfTo(i) {
		return b
	}
	s.send, s.sent = false, true
	if !a.timers.running(timerT4) { // it may be sent early: see answerMuted
		a.timers.set(timerT4, now+a.paths[i].rto.Value()) // A4
	}
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
