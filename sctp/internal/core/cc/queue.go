package cc

import (
	"math"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

const (
	// lossBeta is what a random loss leaves of the window, and shortBeta on a path as
	// short as scatterPath: there a window of a few dozen packets must last until a
	// process that sleeps is awake, many times the round-trip time of the line.
	lossBeta  = 0.9375
	shortBeta = 0.96875
	// queuePackets and queueShare: up to so many packets, or this part of the
	// window, in a queue count as none, since round-trip times scatter.
	queuePackets = 3
	queueShare   = 16
	// fewSamples is how many round-trip times of a round trip that has just begun say nothing
	// yet, unless the one before had less than twice as many: the least of a few that scatter
	// by a millisecond or two is longer than that of a whole round trip, which looked like a queue.
	fewSamples = 8
	// queueMemory bounds how old the round-trip time is that stands for an empty
	// queue: the route may change.
	queueMemory clock.Time = 30_000_000_000
)

// queueing tells, from round-trip times, whether packets of a path wait in a
// queue, as TCP Vegas and TCP Veno do (Fu and Liew, "TCP Veno: TCP Enhancement for
// Transmission Over Wireless Access Networks", 2003): the window is W = rate x RTT,
// of which rate x base is on the line and the rest in the queue.
type queueing struct {
	least [2]clock.Time // of this part of queueMemory and the one before; 0: none
	since clock.Time    // when this part began
	round [2]clock.Time // least of this round trip and of the one before
	ends  clock.Time    // when this round trip is over
	began clock.Time    // when it began
	acked int32         // bytes acknowledged in it
	taken [2]uint16     // how many round-trip times round is the least of, at most 2*fewSamples
	rate  [2]int64      // bytes per second acknowledged in the two round trips before
	lost  scatter
}

func (q *queueing) onAck(a *Ack) {
	q.acked += int32(min(a.Acked, math.MaxInt32-int(q.acked)))
	if a.RTT <= 0 {
		return
	}
	if age := a.Now - q.since; age >= queueMemory/2 {
		q.least = [2]clock.Time{0, q.least[0]}
		if age >= queueMemory {
			q.least[1] = 0
		}
		q.since = a.Now
	}
	if q.least[0] == 0 || a.RTT < q.least[0] {
		q.least[0] = a.RTT
	}
	q.lost.onAck(a.Now, a.RTT, a.Acked)
	if a.Now >= q.ends {
		q.round, q.taken = [2]clock.Time{0, q.round[0]}, [2]uint16{0, q.taken[0]}
		q.ends = a.Now + a.RTT
		if d := a.Now - q.began; q.began != 0 && d > 0 {
			q.rate = [2]int64{perSecond(int(q.acked), d), q.rate[0]}
		}
		q.began, q.acked = a.Now, 0
	}
	if q.taken[0] == 0 || a.RTT < q.round[0] {
		q.round[0] = a.RTT
	}
	q.taken[0] = min(q.taken[0]+1, 2*fewSamples)
}

// random reports whether a loss that was just found is no sign of congestion: no
// packet waits in a queue, or losses fall on short and long times alike.
func (q *queueing) random(cwnd, mtu int) bool {
	q.lost.onLoss()
	if q.none(cwnd, mtu) {
		return true
	}
	base, _ := q.now()
	return base != 0 && q.lost.even(base)
}

// beta returns what a random loss leaves of the window.
func (q *queueing) beta() float64 {
	if base, _ := q.now(); base <= scatterPath {
		return shortBeta
	}
	return lossBeta
}

// none reports whether the queue is empty, as far as the last two round trips
// show. It is false where nothing is known.
func (q *queueing) none(cwnd, mtu int) bool {
	base, now := q.now()
	if now == 0 {
		return false
	}
	queued := float64(cwnd) * float64(now-base) / float64(now)
	return queued < max(queuePackets*float64(mtu), float64(cwnd)/queueShare)
}

// line returns the size of the window that keeps the line busy and leaves nothing in
// the queue: the rate at which packets were acknowledged times the round-trip time
// with an empty queue. It is 0 if that is not known, and where the queue is too short
// to tell it from what else takes time.
func (q *queueing) line(now clock.Time) int {
	base, rtt := q.now()
	if q.rate[1] == 0 || rtt-base < hystartMinThresh {
		return 0
	}
	rate := max(q.rate[0], q.rate[1])
	if d := now - q.began; d >= rtt/4 { // too short a time may be that of a burst
		rate = max(rate, perSecond(int(q.acked), d))
	}
	return int(float64(rate) * float64(base) / 1e9)
}

// perSecond returns the rate of n bytes in d.
func perSecond(n int, d clock.Time) int64 { return int64(n) * 1_000_000 / max(int64(d)/1000, 1) }

// now returns the round-trip time with an empty queue, and that of the last two
// round trips; 0 where that is not known.
func (q *queueing) now() (base, now clock.Time) {
	base = q.least[0]
	if o := q.least[1]; o != 0 && o < base {
		base = o
	}
	if q.round[1] == 0 || base == 0 {
		return 0, 0
	}
	if q.taken[0] < min(fewSamples, q.taken[1]/2) {
		return base, q.round[1]
	}
	return base, max(q.round[0], q.round[1])
}
