// Package pace spreads the packets of a path over its round trip (RFC 9260, Section
// 6.1, rule D, in another way). A [Pacer] belongs to one path.
package pace

import "github.com/weftstack/weft/sctp/internal/core/clock"

const (
	// MinRTT is the smoothed round-trip time below which nothing is paced:
	// timers are coarser than such a path, and its queues drain as fast.
	MinRTT clock.Time = 1_000_000
	// MinBurst is the least burst allowance: one full GSO batch.
	MinBurst = 64 << 10
	// tick is how late a timer may come. The burst allowance covers it, so
	// that a late timer costs no throughput.
	tick clock.Time = 2_000_000
)

// Pacer spreads packets over the round trip in place of Max.Burst (RFC 9260,
// Section 6.1, D): a token bucket filled at 2 × cwnd/srtt in slow start and
// 1.25 × cwnd/srtt after it. The zero Pacer lets everything pass.
//
// Deviation (RFC 9260, Section 6.1, D, SHOULD): a burst is limited by bytes and
// rate, not by a count of packets; with one SACK per receive batch a Max.Burst
// of 4 would stall the sender. [MaxBurst] has the rule for those who want it.
type Pacer struct {
	rate   int64 // bytes per second; 0 does not pace
	burst  int64
	tokens int64
	last   clock.Time
}

// Update sets the rate from the congestion window and the smoothed round-trip
// time. It is cheap enough to be called with every SACK.
func (p *Pacer) Update(now clock.Time, cwnd int, srtt clock.Time, slowStart bool) {
	if srtt < MinRTT {
		p.rate = 0
		return
	}
	gain := int64(5)
	if slowStart {
		gain = 8
	}
	// gain/4 × cwnd per srtt; cwnd is below 2^31, so nothing overflows.
	p.SetRate(now, gain*int64(cwnd)*250_000/max(int64(srtt)/1000, 1))
}

// SetRate sets the rate in bytes per second, 1 at least.
func (p *Pacer) SetRate(now clock.Time, rate int64) {
	was := p.rate
	if was != 0 {
		p.fill(now)
	}
	p.rate = max(rate, 1)
	p.burst = max(MinBurst, p.rate*int64(tick/1000)/1_000_000)
	if was == 0 {
		p.tokens, p.last = p.burst, now
	}
	p.tokens = min(p.tokens, p.burst)
}

func (p *Pacer) fill(now clock.Time) {
	d := int64(now - p.last)
	if d <= 0 {
		return
	}
	p.last = now
	if d >= 1_000_000_000 {
		p.tokens = p.burst
		return
	}
	p.tokens = min(p.burst, p.tokens+p.rate*(d/1000)/1_000_000)
	p.last -= clock.Time(d % 1000) // what is less than a microsecond counts next time
}

// Budget returns how many bytes may be sent now.
func (p *Pacer) Budget(now clock.Time) int {
	if p.rate == 0 {
		return int(^uint(0) >> 1)
	}
	p.fill(now)
	return int(max(p.tokens, 0))
}

// OnSent takes n bytes. It may take more than the budget: one packet always
// goes whole, and retransmissions need not wait.
func (p *Pacer) OnSent(now clock.Time, n int) {
	if p.rate != 0 {
		p.fill(now)
		p.tokens = max(p.tokens-int64(n), -p.burst)
	}
}

// NextTime returns when to try again to send n bytes: when a batch worth a timer
// may be sent (a millisecond's worth, at most a full GSO batch), or 0 if n bytes
// may be sent now.
func (p *Pacer) NextTime(now clock.Time, n int) clock.Time {
	if p.rate == 0 {
		return 0
	}
	p.fill(now)
	if min(int64(n), p.burst) <= p.tokens {
		return 0
	}
	lack := max(min(int64(n), p.burst), min(p.rate/1000, MinBurst)) - p.tokens
	return now + clock.Time(lack*1_000_000/p.rate+1)*1000
}

// Rate returns the rate in bytes per second, or 0 when nothing is paced.
func (p *Pacer) Rate() int64 { return p.rate }

// MaxBurst returns the window to send by under Max.Burst packets (RFC 9260,
// Section 6.1, D): "if ((flightsize + Max.Burst * PMDCS) < cwnd) cwnd =
// flightsize + Max.Burst * PMDCS". With packets <= 0 it is cwnd. The congestion
// window itself does not change.
func MaxBurst(cwnd, flight, mtu, packets int) int {
	if packets <= 0 {
		return cwnd
	}
	return min(cwnd, flight+packets*mtu)
}
