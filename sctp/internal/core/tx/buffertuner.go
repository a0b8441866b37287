package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pace"
)

// Send buffer autotuning. A large send buffer that is always full makes every
// message cold when its turn comes. So no more is queued than keeps the path
// busy: a multiple of what it was seen to hold.
const (
	// tuneFloor is the least that may be queued, if SendBuffer allows.
	tuneFloor = 4 << 20
	// tuneLowRTT is how many bytes may be queued before a message of lowRTTMessage bytes or
	// more on a path with a round-trip time of less than MinRTT, however much it
	// seems to hold: the memory of what is acknowledged is in the caches of the
	// processors still when it is used again.
	tuneLowRTT    = 5 << 18
	lowRTTMessage = 32 << 10
	// tuneFactor is how many times the measured capacity may be queued: twice
	// for slow start to double what is in flight, and as much again to wait.
	tuneFactor = 4
	// tuneWindow is half the time for which a measurement counts.
	tuneWindow clock.Time = 5_000_000_000
	// tuneRound is the least span of a rate measurement: one SACK can
	// acknowledge megabytes at once.
	tuneRound clock.Time = 10_000_000
	// tuneRTT is the least round-trip time that is reckoned with.
	tuneRTT clock.Time = 100_000
)

// BufferTuner estimates what a path holds: the highest rate of delivery times the
// lowest round-trip time, each of the last ten seconds.
type BufferTuner struct {
	until    clock.Time // end of this window
	rtt      clock.Time // minimum of this window, 0 if there is none
	rttPrev  clock.Time
	rate     int64 // maximum of this window, in bytes per second
	ratePrev int64
	began    clock.Time // of the round
	bytes    int64
}

// Ack takes in n newly acknowledged bytes and a sample of the round-trip time,
// which may be 0.
func (t *BufferTuner) Ack(now clock.Time, n int, rtt clock.Time) {
	if now >= t.until {
		t.rttPrev, t.ratePrev = t.rtt, t.rate
		if t.until != 0 && now >= t.until+tuneWindow {
			t.rttPrev, t.ratePrev = 0, 0
		}
		t.rtt, t.rate, t.until = 0, 0, now+tuneWindow
	}
	if rtt > 0 && (t.rtt == 0 || rtt < t.rtt) {
		t.rtt = rtt
	}
	if t.began == 0 {
		t.began = now
		return // what came first was sent before the round
	}
	t.bytes += int64(n)
	if d := now - t.began; d >= max(t.minRTT(), tuneRound) {
		t.rate = max(t.rate, t.bytes*1_000_000/max(int64(d)/1000, 1))
		t.began, t.bytes = now, 0
	}
}

func (t *BufferTuner) minRTT() clock.Time {
	if t.rtt == 0 || t.rttPrev != 0 && t.rttPrev < t.rtt {
		return t.rttPrev
	}
	return t.rtt
}

// Limit returns how many bytes may be queued before Send refuses more. slowest is
// the round-trip time of the slowest path, if there are several in use at once.
func (t *BufferTuner) Limit(slowest clock.Time) int64 {
	rtt := max(t.minRTT(), tuneRTT, slowest)
	return max(tuneFactor*max(t.rate, t.ratePrev)/1_000_000*int64(rtt)/1000, tuneFloor)
}

// LowRTT reports whether tuneLowRTT counts.
func (t *BufferTuner) LowRTT(slowest clock.Time) bool {
	rtt := max(t.minRTT(), slowest)
	return rtt > 0 && rtt < pace.MinRTT
}
