// Package rto estimates retransmission timeouts (RFC 9260, Section 6.3). An
// [Estimator] belongs to one path.
package rto

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Defaults of RFC 9260, Section 16.
const (
	DefaultInitial = time.Second
	DefaultMin     = time.Second
	DefaultMax     = 60 * time.Second
)

// clockGranularity is G of RFC 9260, Section 6.3.1, G1. The clock counts
// nanoseconds; what really bounds a measurement is the scheduler of the host.
const clockGranularity clock.Time = 10_000

// Estimator estimates the retransmission timeout of one path (RFC 9260, Section 6.3).
// The zero Estimator is not ready; use [New].
type Estimator struct {
	srtt, rttvar       clock.Time
	rto                clock.Time
	initial, floor, up clock.Time
	latest, lowest     clock.Time
	backoffs           int
}

// New returns an estimator with the given Estimator.Initial, Estimator.Min and Estimator.Max;
// zeros mean the defaults. Limits that contradict each other are widened.
func New(initial, lo, hi clock.Time) Estimator {
	if initial <= 0 {
		initial = clock.Time(DefaultInitial)
	}
	if lo <= 0 {
		lo = clock.Time(DefaultMin)
	}
	if hi <= 0 {
		hi = clock.Time(DefaultMax)
	}
	hi = max(hi, lo)
	r := Estimator{initial: initial, floor: lo, up: hi}
	// C1: "Until an RTT measurement has been made for a packet sent to the given
	// destination transport address, set Estimator to the protocol parameter
	// 'Estimator.Initial'."
	r.rto = r.clamp(initial)
	return r
}

func (r *Estimator) clamp(t clock.Time) clock.Time { return min(max(t, r.floor), r.up) }

// Sample takes one round-trip time, measured on a chunk that was sent once
// (C5: Karn's algorithm is the caller's duty). It ends any backoff. Samples
// that are not positive count as the granularity of the clock.
func (r *Estimator) Sample(rtt clock.Time) {
	rtt = max(rtt, clockGranularity)
	r.latest = rtt
	if r.lowest == 0 || rtt < r.lowest {
		r.lowest = rtt
	}
	if r.srtt == 0 {
		// C2: SRTT = R, RTTVAR = R/2.
		r.srtt, r.rttvar = rtt, rtt/2
	} else {
		// C3: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R'|, SRTT = 7/8 SRTT + 1/8 R',
		// with "its value before updating SRTT itself" in the first.
		d := r.srtt - rtt
		if d < 0 {
			d = -d
		}
		r.rttvar += (d - r.rttvar) / 4
		r.srtt += (rtt - r.srtt) / 8
	}
	// G1: "if RTTVAR == 0, then adjust RTTVAR = G".
	if r.rttvar == 0 {
		r.rttvar = clockGranularity
	}
	// C6 and C7: not below Estimator.Min, not above Estimator.Max.
	r.rto = r.clamp(r.srtt + 4*r.rttvar)
	r.backoffs = 0
}

// Backoff doubles the timeout after T3-rtx expired (E2), up to Estimator.Max.
func (r *Estimator) Backoff() {
	r.rto = r.clamp(2 * r.rto)
	r.backoffs++
}

// EndBackoff returns to the timeout that the measurements give.
func (r *Estimator) EndBackoff() {
	if r.backoffs == 0 {
		return
	}
	r.backoffs = 0
	if r.srtt == 0 {
		r.rto = r.clamp(r.initial)
		return
	}
	r.rto = r.clamp(r.srtt + 4*r.rttvar)
}

// Reset forgets all measurements, as after a change of route.
func (r *Estimator) Reset() { *r = New(r.initial, r.floor, r.up) }

// SetLimits changes Estimator.Initial, Estimator.Min and Estimator.Max; zeros leave them as they
// are. The current timeout is brought within the limits.
func (r *Estimator) SetLimits(initial, lo, hi clock.Time) {
	if initial > 0 {
		r.initial = initial
	}
	if lo > 0 {
		r.floor = lo
	}
	if hi > 0 {
		r.up = hi
	}
	r.up = max(r.up, r.floor)
	if r.srtt == 0 && r.backoffs == 0 {
		r.rto = r.initial
	}
	r.rto = r.clamp(r.rto)
}

// Value returns the current timeout, backoff included.
func (r *Estimator) Value() clock.Time { return r.rto }

// SRTT returns the smoothed round-trip time, or 0 before the first sample.
func (r *Estimator) SRTT() clock.Time { return r.srtt }

// Var returns RTTVAR, or 0 before the first sample.
func (r *Estimator) Var() clock.Time { return r.rttvar }

// Latest returns the last sample, or 0.
func (r *Estimator) Latest() clock.Time { return r.latest }

// Min returns the smallest sample, or 0.
func (r *Estimator) Min() clock.Time { return r.lowest }

// Backoffs returns how often the timeout was doubled since the last sample.
func (r *Estimator) Backoffs() int { return r.backoffs }
