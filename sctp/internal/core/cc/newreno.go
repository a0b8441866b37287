package cc

import "github.com/weftstack/weft/sctp/internal/core/clock"

// newReno is the congestion control of RFC 9260, Section 7.2.
type newReno struct {
	cfg      Config
	mtu      int // PMDCS
	cwnd     int
	ssthresh int
	pba      int // partial_bytes_acked
	usage    usage
}

func newNewReno(c Config, mtu int) *newReno {
	r := &newReno{cfg: c, mtu: mtu}
	r.Reset()
	return r
}

func (r *newReno) Name() string    { return "newreno" }
func (r *newReno) Cwnd() int       { return r.cwnd }
func (r *newReno) Ssthresh() int   { return r.ssthresh }
func (*newReno) PacingRate() int64 { return 0 }
func (r *newReno) SetMTU(mtu int)  { r.mtu, r.cwnd = mtu, max(r.cwnd, mtu) }

func (r *newReno) Reset() {
	// "The initial value of ssthresh SHOULD be arbitrarily high."
	r.cwnd, r.ssthresh, r.pba = r.cfg.initialWindow(r.mtu), initialSsthresh, 0
	r.usage = usage{}
}

func (r *newReno) OnSent(now clock.Time, _, flight int) { r.usage.sent(now, flight, r.cwnd, r.mtu) }

func (r *newReno) OnAck(a Ack) {
	full := r.usage.full(&a)
	if r.cwnd <= r.ssthresh {
		// Section 7.2.1: "increase cwnd only if the current congestion window is
		// being fully utilized and the data sender is not in Fast Recovery", "by,
		// at most, the lesser of" what was acknowledged and L * PMDCS.
		if full && !a.InRecovery {
			r.grow(min(a.Acked, r.cfg.SlowStartL*r.mtu))
		}
	} else {
		// Section 7.2.2. Duplicate TSNs are not credited: their size is no
		// longer known, and "MAY" allows less.
		r.pba += a.Acked
		used := a.FlightBefore+r.mtu > r.cwnd
		switch {
		case r.pba > r.cwnd && !used:
			r.pba = r.cwnd
		case r.pba >= r.cwnd && used:
			r.pba -= r.cwnd
			r.grow(r.mtu)
		}
	}
	// "When all of the data transmitted by the sender has been acknowledged by
	// the receiver, partial_bytes_acked is initialized to 0."
	if a.Flight == 0 {
		r.pba = 0
	}
}

func (r *newReno) grow(n int) { r.cwnd = min(r.cwnd+n, r.cfg.MaxWindow) }

// OnLoss is Section 7.2.3: "ssthresh = max(cwnd / 2, 4 * PMDCS), cwnd = ssthresh,
// partial_bytes_acked = 0".
func (r *newReno) OnLoss(clock.Time) {
	r.ssthresh = max(r.cwnd/2, 4*r.mtu)
	r.cwnd, r.pba = r.ssthresh, 0
}

// OnTimeout is Section 7.2.3: "ssthresh = max(cwnd / 2, 4 * PMDCS), cwnd = PMDCS,
// partial_bytes_acked = 0".
func (r *newReno) OnTimeout(clock.Time) {
	r.ssthresh = max(r.cwnd/2, 4*r.mtu)
	r.cwnd, r.pba = r.mtu, 0
	r.usage = usage{}
}

// OnECN treats a mark like a lost packet (RFC 4960, Appendix A).
func (r *newReno) OnECN(now clock.Time) { r.OnLoss(now) }

func (r *newReno) OnIdle(idle, rto clock.Time) {
	if rto <= 0 || idle < rto {
		return
	}
	// "Before the first cwnd adjustment, the ssthresh of the transport address
	// SHOULD be set to the cwnd."
	r.ssthresh = max(r.ssthresh, r.cwnd)
	if r.ssthresh == initialSsthresh {
		r.ssthresh = r.cwnd
	}
	r.cwnd = decayIdle(r.cwnd, r.mtu, idle, rto)
	r.usage = usage{}
}
