package core

import (
	"fmt"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/asconf"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/timer"
)

// checkInvariants computes again everything that an association keeps accounts of and
// returns the first thing that does not add up. It is to be called between
// calls of the association, and takes time in proportion to what is outstanding
// and held.
func checkInvariants(a *Assoc) error {
	for _, check := range []func(*Assoc) error{checkSendAccounts, checkPaths, checkTimers,
		checkTracker, checkReceiveAccounts, checkQueues, checkSlowReasons} {
		if err := check(a); err != nil {
			return fmt.Errorf("%v: %w", a.state, err)
		}
	}
	return nil
}

// checkSlowReasons finds the reasons for the slow path anew: a feature that forgot to set
// its bit would leave a fast path open that does not know of it.
func checkSlowReasons(a *Assoc) error {
	got, want := a.slow, a.findSlowReasons()
	if a.state == Closed { // nothing finds the others any more
		got, want = got&slowState, slowState
	}
	if got != want {
		return fmt.Errorf("reasons for the slow path are %014b, found %014b", got, want)
	}
	return nil
}

// checkSendAccounts checks the send queue and the scoreboard.
func checkSendAccounts(a *Assoc) error {
	return a.tx.sb.Verify(a.state == Closed, func(i int) bool { return i < len(a.paths) && !a.paths[i].gone })
}

// checkPaths checks what RFC 9260, Section 7.2 says of windows, and the states
// of paths.
func checkPaths(a *Assoc) error {
	if len(a.paths) == 0 || len(a.timers.Path) != len(a.paths) || a.tx.sb.Paths() < len(a.paths) || a.NumPaths() > address.MaxPeer {
		return fmt.Errorf("%d paths, timers for %d, accounts for %d", len(a.paths), len(a.timers.Path), a.tx.sb.Paths())
	}
	if a.primary >= len(a.paths) || a.paths[a.primary].gone || a.NumPaths() == 0 {
		return fmt.Errorf("path %d of %d is the primary one", a.primary, len(a.paths))
	}
	for i := range a.paths {
		p := &a.paths[i]
		f := a.tx.sb.Flight(i)
		switch {
		case p.gone && f > 0:
			return fmt.Errorf("removed path %d has %d bytes in flight", i, f)
		case p.gone:
		case a.state.connected() && len(a.local.InUse) > 0 && !a.local.SendsFrom(p.home):
			return fmt.Errorf("path %d sends from %v, we have %v, leaving %v", i, p.home, a.local.InUse, a.local)
		case p.cc.Cwnd() < p.pmdcs() || p.cc.Cwnd() > cc.DefaultMaxWindow:
			return fmt.Errorf("path %d has a window of %d, packets of %d", i, p.cc.Cwnd(), p.pmdcs())
		case p.cc.Ssthresh() <= 0:
			return fmt.Errorf("path %d has ssthresh %d", i, p.cc.Ssthresh())
		case p.mtu < pmtu.MinMTU || p.mtu > MaxPacket || p.mtu%4 != 0:
			return fmt.Errorf("path %d takes packets of %d bytes", i, p.mtu)
		case p.mtu != p.plpmtu.MTU():
			return fmt.Errorf("path %d takes packets of %d bytes, discovery says %d", i, p.mtu, p.plpmtu.MTU())
		case a.timers.Path[i][timer.PathMTU] != p.plpmtu.Deadline() && a.state != Closed:
			return fmt.Errorf("path %d: timer of discovery at %d, want %d", i, a.timers.Path[i][timer.PathMTU], p.plpmtu.Deadline())
		case p.plpmtu.Verify() != nil:
			return fmt.Errorf("path %d: %w", i, p.plpmtu.Verify())
		case p.rto.Value() < clock.Time(a.cfg.RTOMin) || p.rto.Value() > clock.Time(a.cfg.RTOMax):
			return fmt.Errorf("path %d has RTO %d", i, p.rto.Value())
		case p.pf && !p.active:
			return fmt.Errorf("path %d is potentially failed and inactive", i)
		case p.errors > p.par.maxRetrans && p.active && p.par.maxRetrans == a.cfg.PathMaxRetrans:
			return fmt.Errorf("path %d is active after %d errors", i, p.errors)
		}
	}
	if a.state != Closed && a.errors > a.cfg.AssocMaxRetrans {
		return fmt.Errorf("alive after %d errors", a.errors)
	}
	return nil
}

// checkTimers checks that timers run when they are needed, and only then.
func checkTimers(a *Assoc) error {
	t := &a.timers
	if a.state == Closed {
		if at := a.NextTimeout(); at != 0 || t.Next() != 0 {
			return fmt.Errorf("a timer is to expire at %d", at)
		}
		return nil
	}
	for _, x := range []struct {
		name string
		kind timer.Kind
		want bool
	}{
		{"T1", timer.T1, a.state == CookieWait || a.state == CookieEchoed},
		{"T2", timer.T2, a.state == ShutdownSent || a.state == ShutdownAckSent},
		{"T4", timer.T4, a.asc.Outstanding() && !a.asc.Due()},
	} {
		if x.kind == timer.T4 && (!x.want || !a.state.canSendData()) {
			continue // it may still run
		}
		if t.Running(x.kind) != x.want {
			return fmt.Errorf("timer %s runs %v", x.name, !x.want)
		}
	}
	if a.rc.Outstanding() && !a.rc.Due() && a.state.canSendData() && !t.Running(timer.Reconfig) {
		return fmt.Errorf("no timer for an outstanding RE-CONFIG")
	}
	s := a.tx.sb
	for i := range a.paths {
		run := t.RunningPath(timer.T3, i)
		if a.state.canSendData() && s.FlightChunks(i) > 0 && !run {
			return fmt.Errorf("no T3 on path %d with %d bytes in flight", i, s.Flight(i))
		}
		if run && (s.Outstanding() == 0 || a.paths[i].gone) {
			return fmt.Errorf("T3 runs on path %d, %d TSNs outstanding", i, s.Outstanding())
		}
		// RFC 9260, Section 8.3: idle paths are probed.
		p := &a.paths[i]
		if a.state.heartbeating() && !p.gone && p.par.hbInterval >= 0 && !p.hb.pending && !t.RunningPath(timer.Heartbeat, i) {
			return fmt.Errorf("path %d is not probed", i)
		}
		if p.hb.waiting && !t.RunningPath(timer.Heartbeat, i) {
			return fmt.Errorf("path %d waits for the answer to a heartbeat for ever", i)
		}
	}
	if a.state.canSendData() && s.ForwardOutstanding() && !s.ForwardDue() {
		any := false
		for i := range a.paths {
			any = any || t.RunningPath(timer.T3, i)
		}
		if !any {
			return fmt.Errorf("no T3 for a FORWARD-TSN")
		}
	}
	return nil
}

// checkTracker checks the map of received TSNs.
func checkTracker(a *Assoc) error {
	if a.rx.reasm == nil {
		return nil
	}
	return a.rx.tsns.Verify()
}

// checkReceiveAccounts checks what is held for the user: a_rwnd has to be
// exact, or the window closes for ever or lets the peer fill the memory.
// Pieces that were given out are counted by the caller of PopPiece alone.
func checkReceiveAccounts(a *Assoc) error {
	if a.rx.reasm == nil {
		return nil
	}
	return a.rx.reasm.Verify()
}

// checkQueues checks the bounds of everything else that a peer can make grow.
func checkQueues(a *Assoc) error {
	switch {
	case a.ctl.n > maxControlReplies:
		return fmt.Errorf("%d control replies", a.ctl.n)
	case a.standalone.n > maxReplyPackets:
		return fmt.Errorf("%d packets that stand alone", a.standalone.n)
	case len(a.local.InUse) > address.MaxLocal+asconf.MaxQueue:
		return fmt.Errorf("%d local addresses", len(a.local.InUse))
	case len(a.events.list)-a.events.head > maxEvents+reconfig.MaxRequests+asconf.MaxQueue+8:
		return fmt.Errorf("%d events", len(a.events.list)-a.events.head)
	}
	if err := a.asc.Verify(); err != nil {
		return err
	}
	return a.rc.Verify()
}
