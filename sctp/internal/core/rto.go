package core

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Defaults of RFC 9260, Section 16.
const (
	DefaultRTOInitial = time.Second
	DefaultRTOMin     = time.Second
	DefaultRTOMax     = 60 * time.Second
)

// clockGranularity is G of RFC 9260, Section 6.3.1, G1. The clock counts
// nanoseconds; what really bounds a measurement is the scheduler of the host.
const clockGranularity clock.Time = 10_000

// RTO estimates the retransmission timeout of one path (RFC 9260, Section 6.3).
// The zero RTO is not ready; use [NewRTO].
type RTO struct {
	srtt, rttvar       clock.Time
	rto                clock.Time
	initial, floor, up clock.Time
	latest, lowest     clock.Time
	backoffs           int
}

// NewRTO returns an estimator with the given RTO.Initial, RTO.Min and RTO.Max;
// zeros mean the defaults. Limits that contradict each other are widened.
func NewRTO(initial, lo, hi clock.Time) RTO {
	if initial <= 0 {
		initial = clock.Time(DefaultRTOInitial)
	}
	if lo <= 0 {
		lo = clock.Time(DefaultRTOMin)
	}
	if hi <= 0 {
		hi = clock.Time(DefaultRTOMax)
	}
	hi = max(hi, lo)
	r := RTO{initial: initial, floor: lo, up: hi}
	// C1: "Until an RTT measurement has been made for a packet sent to the given
	// destination transport address, set RTO to the protocol parameter
	// 'RTO.Initial'."
	r.rto = r.clamp(initial)
	return r
}

func (r *RTO) clamp(t clock.Time) clock.Time { return min(max(t, r.floor), r.up) }

// Sample takes one round-trip time, measured on a chunk that was sent once
// (C5: Karn's algorithm is the caller's duty). It ends any backoff. Samples
// that are not positive count as the granularity of the clock.
func (r *RTO) Sample(rtt clock.Time) {
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
	// C6 and C7: not below RTO.Min, not above RTO.Max.
	r.rto = r.clamp(r.srtt + 4*r.rttvar)
	r.backoffs = 0
}

// Backoff doubles the timeout after T3-rtx expired (E2), up to RTO.Max.
func (r *RTO) Backoff() {
	r.rto = r.clamp(2 * r.rto)
	r.backoffs++
}

// EndBackoff returns to the timeout that the measurements give.
func (r *RTO) EndBackoff() {
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
func (r *RTO) Reset() { *r = NewRTO(r.initial, r.floor, r.up) }

// SetLimits changes RTO.Initial, RTO.Min and RTO.Max; zeros leave them as they
// are. The current timeout is brought within the limits.
func (r *RTO) SetLimits(initial, lo, hi clock.Time) {
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
func (r *RTO) Value() clock.Time { return r.rto }

// SRTT returns the smoothed round-trip time, or 0 before the first sample.
func (r *RTO) SRTT() clock.Time { return r.srtt }

// Var returns RTTVAR, or 0 before the first sample.
func (r *RTO) Var() clock.Time { return r.rttvar }

// Latest returns the last sample, or 0.
func (r *RTO) Latest() clock.Time { return r.latest }

// Min returns the smallest sample, or 0.
func (r *RTO) Min() clock.Time { return r.lowest }

// Backoffs returns how often the timeout was doubled since the last sample.
func (r *RTO) Backoffs() int { return r.backoffs }
