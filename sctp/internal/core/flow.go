package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pace"
	"github.com/weftstack/weft/sctp/internal/core/timer"
)

// mayFill reports whether the congestion window and the pacer let another packet
// leave on path i. RFC 9260, Section 6.1, B: not with cwnd or more bytes
// outstanding, and exceeding it by less than a packet otherwise.
func (t *sender) mayFill(now clock.Time, i int) bool {
	p := t.path(i)
	flight, cwnd := t.sb.Flight(i), p.cc.Cwnd()
	if flight == 0 && p.lastData != 0 && now > p.lastData {
		p.cc.OnIdle(now-p.lastData, p.rto.Value())
		p.lastData = 0
		cwnd = p.cc.Cwnd()
	}
	if t.cfg.MaxBurst > 0 {
		cwnd = pace.MaxBurst(cwnd, p.burstFrom, p.pmdcs(), t.cfg.MaxBurst)
	}
	// Section 7.2.1: after a retransmission timeout "only one packet is allowed
	// to be in flight until successful acknowledgement".
	if flight >= cwnd || p.single && flight > 0 {
		return false
	}
	if t.cfg.NoPacing || p.pacer.Budget(now) > 0 {
		return true
	}
	at := p.pacer.NextTime(now, p.mtu)
	if at <= now {
		return true
	}
	t.paceUntil(now, at)
	return false
}

// windowOpen reports whether the peer's receive window lets new data leave, or
// whether it is time for a zero window probe (RFC 9260, Section 6.1, A). It also
// is where the Nagle algorithm waits.
func (t *sender) windowOpen(now clock.Time, i int) bool {
	if t.cork == corkAll || t.cork == corkTail && t.q.Unsent() < int64(t.path(i).pmdcs()-t.q.HeaderLen()) {
		return false
	}
	if t.cfg.Bundle && t.sb.Flight(i) > 0 && !t.q.Fills(t.path(i).pmdcs()) {
		return false
	}
	if !t.sb.ZeroWindow() || t.mayProbe {
		return true
	}
	// "The sender SHOULD send the first zero window probe after 1 RTO when it
	// detects that the receiver has closed its window and SHOULD increase the
	// probe interval exponentially afterwards." Not before everything
	// outstanding is acknowledged.
	if t.sb.Outstanding() == 0 && !t.timers.Running(timer.Probe) {
		wait := min(t.path(i).rto.Value()<<min(t.probes, 16), clock.Time(t.cfg.RTOMax))
		t.timers.Start(timer.Probe, now+wait)
	}
	return false
}

// dataReady reports whether there may be a DATA or FORWARD-TSN chunk for path i.
func (t *sender) dataReady(now clock.Time, i, d int) bool {
	sb := t.sb
	if i == d && sb.ForwardDue() {
		return true
	}
	if sb.HasRtx() {
		return i == t.repairTo(now, d) && (sb.Permit() || t.mayFill(now, i))
	}
	return i == d && t.q.Pending() && (sb.Permit() || t.mayFill(now, i)) && t.windowOpen(now, i)
}

// paceUntil sets the timer of the pacer, unless it expires earlier.
func (t *sender) paceUntil(now, at clock.Time) {
	if was := t.timers.One[timer.Pace]; was <= now || at < was {
		t.timers.Start(timer.Pace, at)
	}
}

// roomAt returns when the congestion window and the pacer let another packet
// leave on path i: now or later, or 0 if only an acknowledgement can tell.
func (t *sender) roomAt(now clock.Time, i int) clock.Time {
	p := t.path(i)
	if t.sb.Flight(i) >= p.cc.Cwnd() {
		return 0
	}
	if t.cfg.NoPacing || p.pacer.Budget(now) > 0 {
		return now
	}
	return max(p.pacer.NextTime(now, p.mtu), now)
}

// baseRTT returns the round-trip time of path i without queues, and without the
// delay of acknowledgements: a message that is acknowledged late because it came
// alone makes the smoothed one 200 ms on any path.
func (t *sender) baseRTT(i int) clock.Time {
	srtt, least := t.path(i).rto.SRTT(), t.sb.MinRTT(i)
	if least == 0 {
		return srtt
	}
	return min(srtt, 2*least)
}

// windowGrew sends the window probes again that fit the window by now. The timeout of
// their path returns to what was measured: it was doubled to ask the peer ever less often
// whether it has room, not because the path is slow.
func (t *sender) windowGrew(now clock.Time) {
	for i := range *t.paths {
		p := t.path(i)
		if !t.sb.ResendProbes(now, i, p.rto.Min()) {
			continue
		}
		p.rto.EndBackoff()
		t.rtxPath = i
		if t.timers.RunningPath(timer.T3, i) {
			t.timers.StartPath(timer.T3, i, now+p.rto.Value())
		}
	}
}

func (t *sender) updatePacer(now clock.Time, i int) {
	if t.cfg.NoPacing {
		return
	}
	p := t.path(i)
	if r := p.cc.PacingRate(); r > 0 {
		p.pacer.SetRate(now, r)
		return
	}
	p.pacer.Update(now, p.cc.Cwnd(), t.baseRTT(i), p.cc.Cwnd() < p.cc.Ssthresh())
}

// lossOn notes, before the congestion control of path i learns of it, that
// chunks were found lost. A loss in the same window as the one before belongs to
// it.
func (t *sender) lossOn(i int) {
	if p := t.path(i); t.sb.NoteLoss(i) {
		p.beforeLoss = p.cc.Window()
	}
}

// undoLoss takes back the reduction of the window of path i if the loss turned
// out to be none.
func (t *sender) undoLoss(now clock.Time, i int) {
	if !t.sb.WasNoLoss(i) {
		return
	}
	p := t.path(i)
	p.cc.Undo(p.beforeLoss)
	p.count.undone++
	t.updatePacer(now, i)
}
