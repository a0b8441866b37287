package cc

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pace"
)

// Constants of BBR (draft-ietf-ccwg-bbr, Section 2). Gains are in percent.
const (
	startupGain   = 277 // 4 ln 2: the rate doubles each round trip
	drainGain     = 35
	probeUpGain   = 125
	probeDownGain = 75
	windowGain    = 200
	// firstPackets is the initial window (RFC 6928).
	firstPackets = 10
	// paceMargin leaves some of the line free, so that queues drain.
	paceMargin = 99
	// fullRounds round trips in which the rate grew by less than a quarter tell that
	// the line is full.
	fullRounds = 3
	// cruiseRTTs, upRTTs and downRTTs bound the parts of a cycle, in round-trip times:
	// cruising takes just as many, the others may end earlier.
	cruiseRTTs, upRTTs, downRTTs = 6, 4, 2
	// probeGrowth: a rate that grew by more than one part in so many is probed again at once.
	probeGrowth = 16
	// lossShare: more than one byte of so many lost in a round trip, and lossPackets
	// more, is no random loss, and takes boundBeta percent of what was in flight as the
	// bound. The draft has 2 %, at which a line that loses 1 % would be left unused by chance.
	lossShare   = 20
	lossPackets = 3
	boundBeta   = 70
	// rttMemory is how long a round-trip time stands for an empty queue. ProbeRTT comes
	// when none as short, give or take 1/rttSlack, was seen for half of it.
	rttMemory = clock.Time(10_000_000_000)
	rttSlack  = 16
	// probeRTTTime is how long the window is half of what the line holds, and
	// probeRTTMost bounds the time to come down to it.
	probeRTTTime = clock.Time(200_000_000)
	probeRTTMost = clock.Time(1_000_000_000)
	// paceSlack is how late what could have left by the pacing rate may leave without
	// the application having been the limit: timers are late.
	paceSlack = clock.Time(2_000_000)
	// quantumTime and maxQuantum are of a batch that is sent at once. The window has
	// room for quanta of them besides, for who acknowledges batches.
	quantumTime = 1_000 // per second: a millisecond
	maxQuantum  = 64 << 10
	quanta      = 3
)

// phase is what BBR does at a time.
type phase uint8

const (
	startup phase = iota
	drain
	probeUp
	probeDown
	cruise
	probeRTT
)

// gains are those of the pacing rate.
var gains = [...]int64{startupGain, drainGain, probeUpGain, probeDownGain, 100, 100}

// bbr is BBR congestion control (draft-ietf-ccwg-bbr; Cardwell et al., "BBR:
// Congestion-Based Congestion Control", 2017): it paces by a model of the path, of the
// greatest rate of delivery of late and the least round-trip time, and reacts to losses
// only if they are many. Of the draft it has the states and bounds, with the gain cycle of
// the paper, and neither the short-term bounds, which every loss lowers, nor the estimate
// of aggregation, in place of which the window has room for some batches.
//
// What it knows outlives pauses and times in which the application is the limit: those
// only add to the rate.
//
// Deviation (RFC 9260, Section 7.2, MUST NOT, and 7.2.1 to 7.2.3): the window follows the
// model. It begins with ten packets. Neither does a loss reduce it, nor a pause, nor does it grow by a packet per
// round trip only. A timeout makes it one packet, as there, until what is sent after it is
// acknowledged. It is an algorithm to opt in to.
type bbr struct {
	cfg   Config
	mtu   int
	cwnd  int
	phase phase
	since clock.Time // when phase began
	d     delivery
	// bw is the greatest rate of this cycle and the one before, bytes per second;
	// fresh tells that this cycle has a sample that the application did not limit.
	bw     [2]int64
	fresh  bool
	probed int64 // what it was when probeUp began
	// least is the least round-trip time of this half of rttMemory and the one before.
	least   [2]clock.Time
	halfAt  clock.Time // when this half began
	leastAt clock.Time // when one about as short was seen last
	rtt     clock.Time // the last one
	// rate is the pacing rate, due when what was sent would have left by it.
	rate int64
	due  clock.Time
	// bound is the window above which there was too much loss; 0: none.
	bound int
	// A round trip ends when what was sent by roundEnd is acknowledged or lost.
	roundEnd, roundAcked, roundLost int64
	peak                            int   // most in flight in it
	lowered                         int64 // what was sent when bound was lowered
	// full tells that the line is, after flat round trips that added little to fullRate.
	full     bool
	flat     int
	fullRate int64
	sampled  bool // this round trip has a sample that the application did not limit
	// belowAt is when ProbeRTT had come down to its window.
	belowAt clock.Time
	// saved is the window to return to when more than timeoutAt was acknowledged or
	// lost; 0: no timeout.
	saved     int
	timeoutAt int64
}

func newBBR(c Config, mtu int) *bbr {
	if c.InitialPackets == 0 {
		c.InitialPackets = firstPackets
	}
	b := &bbr{cfg: c, mtu: mtu}
	b.Reset()
	return b
}

func (b *bbr) Name() string { return "bbr" }
func (b *bbr) Cwnd() int    { return b.cwnd }

// Ssthresh is what the line holds with an empty queue, if known.
func (b *bbr) Ssthresh() int {
	if !b.full {
		return initialSsthresh
	}
	return b.capped(b.holds(100))
}

func (b *bbr) SetMTU(mtu int) { b.mtu, b.cwnd = mtu, max(b.cwnd, mtu) }

func (b *bbr) Reset() {
	*b = bbr{cfg: b.cfg, mtu: b.mtu, cwnd: b.cfg.initialWindow(b.mtu),
		d: delivery{sent: int64(b.d.flight), flight: b.d.flight}}
	b.roundEnd = b.d.sent
}

// PacingRate is 0 where timers are coarser than the path, as for other algorithms.
func (b *bbr) PacingRate() int64 {
	if b.minRTT() < pace.MinRTT || b.maxRate() == 0 {
		return 0
	}
	return b.rate
}

func (b *bbr) maxRate() int64 { return max(b.bw[0], b.bw[1]) }

// minRTT returns the round-trip time with an empty queue, or 0.
func (b *bbr) minRTT() clock.Time {
	if b.least[1] != 0 && (b.least[0] == 0 || b.least[1] < b.least[0]) {
		return b.least[1]
	}
	return b.least[0]
}

// holds returns gain percent of what the line holds: rate times round-trip time.
func (b *bbr) holds(gain int64) int {
	return int(min(b.maxRate()*int64(b.minRTT()/1000)/1_000_000, int64(b.cfg.MaxWindow)) * gain / 100)
}

// capped returns what the bounds leave of a window, four packets at least.
func (b *bbr) capped(w int) int {
	if b.bound != 0 {
		w = min(w, b.bound)
	}
	return min(max(w, 4*b.mtu), b.cfg.MaxWindow)
}

// target is the window by the model.
func (b *bbr) target() int {
	if b.phase == probeRTT {
		return b.capped(b.holds(50))
	}
	quantum := min(max(int(b.rate/quantumTime), 2*b.mtu), maxQuantum)
	return b.capped(b.holds(windowGain) + quanta*quantum)
}

func (b *bbr) OnSent(now clock.Time, n, flight int) {
	if b.rate > 0 {
		slack := b.minRTT() / 4
		if b.PacingRate() != 0 {
			slack = max(slack, paceSlack)
		}
		// What leaves late though window and pacer would have let it go earlier had not been
		// there. Samples are whole again after a round trip, and a message that is over by
		// then tells nothing of the line.
		if now-b.due > slack {
			if flight-n+b.mtu <= b.cwnd {
				b.d.limited = now + 2*b.minRTT()
			}
			b.due = now
		}
		b.due += clock.Time(int64(n) * 1_000_000_000 / b.rate)
	}
	b.d.onSent(now, n, flight, max(b.mtu, b.cwnd/(sendMarks/2)))
}

func (b *bbr) OnAck(a Ack) {
	if a.FlightBefore+b.mtu > b.cwnd {
		b.due = max(b.due, a.Now) // the window was the limit
	}
	b.peak = max(b.peak, a.FlightBefore)
	if s := b.d.onAck(&a, b.minRTT()); s.rate > 0 && (!s.limited || s.rate > b.maxRate()) {
		b.bw[0] = max(b.bw[0], s.rate)
		b.fresh, b.sampled = b.fresh || !s.limited, b.sampled || !s.limited
	}
	if a.RTT > 0 {
		b.takeRTT(a.Now, a.RTT)
	}
	if b.saved > 0 && b.d.passed() > b.timeoutAt {
		b.cwnd, b.saved = max(b.cwnd, b.saved), 0
	}
	if b.d.passed() >= b.roundEnd {
		b.endRound(a.Now)
	}
	b.step(a.Now)
	b.setRate()
	b.setWindow(a.Acked)
}

func (b *bbr) takeRTT(now, rtt clock.Time) {
	b.rtt = rtt
	if b.halfAt == 0 || now-b.halfAt >= rttMemory/2 {
		b.least, b.halfAt = [2]clock.Time{0, b.least[0]}, now
	}
	if b.least[0] == 0 || rtt < b.least[0] {
		b.least[0] = rtt
	}
	if least := b.minRTT(); rtt <= least+least/rttSlack {
		b.leastAt = now
	}
}

// endRound judges the round trip that is over.
func (b *bbr) endRound(now clock.Time) {
	acked, lost := b.d.acked-b.roundAcked, b.d.lost()-b.roundLost
	// What was sent before the bound was lowered may be lost yet.
	if lost > (acked+lost)/lossShare+int64(lossPackets*b.mtu) && b.d.passed() > b.lowered {
		b.lower(now)
	}
	if !b.full && b.sampled {
		if r := b.maxRate(); r >= b.fullRate+b.fullRate/4 {
			b.fullRate, b.flat = r, 0
		} else if b.flat++; b.flat >= fullRounds {
			b.full = true
		}
	}
	b.sampled = false
	b.roundEnd, b.roundAcked, b.roundLost, b.peak = b.d.sent, b.d.acked, b.d.lost(), b.d.flight
}

// lower takes less than what was in flight as the bound, and ends what makes it more.
func (b *bbr) lower(now clock.Time) {
	b.bound = max(b.capped(max(b.peak, b.d.flight))*boundBeta/100, 4*b.mtu)
	b.lowered = b.d.sent
	switch b.phase {
	case startup:
		b.full = true
	case probeUp:
		b.enter(now, probeDown)
	}
}

func (b *bbr) enter(now clock.Time, p phase) { b.phase, b.since = p, now }

// step moves to the next phase when it is time.
func (b *bbr) step(now clock.Time) {
	rtt, in := b.minRTT(), now-b.since
	switch b.phase {
	case startup:
		if b.full {
			b.enter(now, drain)
		}
	case drain:
		if b.d.flight <= b.holds(100) {
			// Flows that began together need not probe together.
			b.enter(now, cruise)
			b.probed = b.maxRate()
			b.since -= rtt * (now / 1000 % cruiseRTTs)
		}
	case cruise:
		// A line that carried more has room for yet more.
		if in >= cruiseRTTs*rtt || b.maxRate() > b.probed+b.probed/probeGrowth {
			b.enter(now, probeUp)
			b.probed = b.maxRate()
			if b.fresh {
				b.bw, b.fresh = [2]int64{0, b.bw[0]}, false
			}
		}
	case probeUp:
		if reached := b.peak+b.mtu > b.capped(b.holds(probeUpGain)); in >= upRTTs*rtt || reached && in >= rtt {
			if reached && b.bound != 0 { // it held with the losses that there were
				if b.bound += b.bound / 4; b.bound > b.holds(windowGain) {
					b.bound = 0
				}
			}
			b.enter(now, probeDown)
		}
	case probeDown:
		if b.d.flight <= b.capped(b.holds(100)) || in >= downRTTs*rtt {
			b.enter(now, cruise)
		}
	case probeRTT:
		b.stepProbeRTT(now)
		return
	}
	// A path that the application does not fill shows its round-trip time by itself.
	if b.full && b.saved == 0 && now-b.leastAt >= rttMemory/2 && now > b.d.limited {
		b.enter(now, probeRTT)
		b.belowAt = 0
	}
}

func (b *bbr) stepProbeRTT(now clock.Time) {
	if b.belowAt == 0 && b.d.flight <= b.target() {
		b.belowAt, b.roundEnd = now, b.d.sent
		b.least[0], b.halfAt = 0, now
	}
	if b.belowAt != 0 && now-b.belowAt >= max(probeRTTTime, b.minRTT()) || now-b.since >= probeRTTMost {
		b.leastAt = now
		b.enter(now, cruise)
		b.cwnd = max(b.cwnd, b.target())
	}
}

func (b *bbr) setRate() {
	b.rate = max(b.maxRate()*gains[b.phase]/100*paceMargin/100, 1)
	if rtt := b.minRTT(); !b.full && rtt > 0 { // as slow start is paced
		b.rate = max(b.rate, 2*perSecond(b.cwnd, rtt))
	}
}

// setWindow grows the window by what was acknowledged, up to that of the model.
func (b *bbr) setWindow(acked int) {
	w := b.target()
	// Samples of a window that doubles lag behind, and more where round-trip times scatter: it
	// grows as in slow start while it is used and they show no queue to speak of.
	rtt := b.minRTT()
	rtt += min(max(rtt/hystartDivisor, hystartMinThresh), hystartMaxThresh)
	if b.phase == startup && b.saved == 0 && 2*b.peak > b.cwnd && b.rtt < rtt {
		w = b.capped(max(w, b.cwnd+acked))
	}
	switch {
	case b.cwnd+acked <= w:
		b.cwnd += acked
	case b.full || b.cwnd < w || b.bound != 0:
		b.cwnd = w
	}
}

func (b *bbr) OnLoss(clock.Time) {}

// OnTimeout returns to the window when what is sent from now on is acknowledged. If that
// times out, too, the path is not what it was.
func (b *bbr) OnTimeout(now clock.Time) {
	again := b.saved > 0
	b.saved, b.timeoutAt = max(b.cwnd, b.saved), b.d.sent
	if again {
		least, half := b.least, b.halfAt // retransmissions would not tell
		b.Reset()
		b.least, b.halfAt, b.leastAt = least, half, now
		b.saved, b.timeoutAt = b.mtu, b.d.sent
	}
	b.d.forget()
	b.d.flight = 0 // or the part of it that is not lost: what was is no rate of loss
	b.roundEnd, b.roundAcked, b.roundLost, b.peak = b.d.sent, b.d.acked, b.d.lost(), 0
	b.cwnd, b.due = b.mtu, now
}

// OnIdle keeps the model: what comes after a pause is paced by it.
func (b *bbr) OnIdle(clock.Time, clock.Time) {}

func (b *bbr) OnECN(now clock.Time) {
	b.lower(now)
	b.setWindow(0)
}

func (b *bbr) Window() Window { return Window{Cwnd: b.cwnd, ssthresh: b.bound} }

func (b *bbr) Undo(w Window) {
	b.cwnd, b.saved = max(b.cwnd, w.Cwnd), 0
	if b.bound != 0 && (w.ssthresh == 0 || w.ssthresh > b.bound) {
		b.bound = w.ssthresh
	}
}
