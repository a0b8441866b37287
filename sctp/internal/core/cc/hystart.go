package cc

import "github.com/weftstack/weft/sctp/internal/core/clock"

// Constants of HyStart++ (RFC 9406, Section 4.3).
const (
	hystartMinThresh clock.Time = 4_000_000
	hystartMaxThresh clock.Time = 16_000_000
	hystartDivisor              = 8
	hystartSamples              = 8
	hystartGrowth               = 4 // CSS_GROWTH_DIVISOR
	hystartRounds               = 5 // CSS_ROUNDS
)

// hystart ends the initial slow start when round-trip times rise (HyStart++, RFC
// 9406): first it slows growth down ("conservative slow start"), and after five
// more rounds it declares slow start done, or takes it back if the times fall.
// A round ends when what was in flight at its start has been acknowledged.
//
// Deviation (RFC 9406, Section 4.2): what the window has grown to in these rounds,
// up to three times, is for the case that the times fall. If they do not, the line was
// full when that began, and the window goes back to what it was. Beside a flow that
// stops at once, as those of Linux do, one that kept it would have most of the line for
// many seconds: CUBIC takes that long to make up for it.
type hystart struct {
	left      int // bytes to be acknowledged in this round
	lastMin   clock.Time
	curMin    clock.Time
	samples   int
	css       bool
	cssBase   clock.Time
	cssRounds int
	window    int // the congestion window when css began
	done      bool
}

func (h *hystart) reset() { *h = hystart{} }

// onAck returns how much of the growth of cwnd by n it lets through. It must not be
// called once done is set.
func (h *hystart) onAck(a Ack, cwnd, n int) int {
	if a.RTT > 0 {
		if h.samples == 0 || a.RTT < h.curMin {
			h.curMin = a.RTT
		}
		h.samples++
	}
	if h.samples >= hystartSamples {
		if !h.css && h.lastMin > 0 {
			thresh := min(max(h.lastMin/hystartDivisor, hystartMinThresh), hystartMaxThresh)
			if h.curMin >= h.lastMin+thresh {
				h.css, h.cssBase, h.cssRounds, h.window = true, h.curMin, 0, cwnd
			}
		} else if h.css && h.curMin < h.cssBase {
			h.css = false // the rise was spurious
		}
	}
	if h.left -= a.Acked; h.left <= 0 {
		h.left = a.Flight
		if h.samples > 0 {
			h.lastMin = h.curMin
		}
		h.samples = 0
		if h.css {
			if h.cssRounds++; h.cssRounds >= hystartRounds {
				h.done = true
			}
		}
	}
	if h.css {
		n /= hystartGrowth
	}
	return n
}
