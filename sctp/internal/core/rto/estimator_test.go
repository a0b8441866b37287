package rto

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

const (
	ms     clock.Time = 1_000_000
	second            = 1000 * ms
)

// rtoTest drives an Estimator one verb per step.
type rtoTest struct {
	t *testing.T
	r Estimator
}

func newRTOTest(t *testing.T, initial, lo, hi clock.Time) *rtoTest {
	return &rtoTest{t, New(initial, lo, hi)}
}

func (h *rtoTest) sample(d clock.Time) { h.t.Helper(); h.t.Logf("RTT %v", d); h.r.Sample(d) }
func (h *rtoTest) expire()             { h.t.Helper(); h.t.Log("T3 expires"); h.r.Backoff() }
func (h *rtoTest) want(rto clock.Time) {
	h.t.Helper()
	if got := h.r.Value(); got != rto {
		h.t.Fatalf("RTO = %v, want %v", got, rto)
	}
}

// RFC 9260, Section 6.3.1.
func TestRTOFollowsMeasurements(t *testing.T) {
	h := newRTOTest(t, second, 1*ms, 60*second)
	h.want(second) // C1
	h.sample(100 * ms)
	h.want(100*ms + 4*50*ms) // C2: SRTT = R, RTTVAR = R/2, Estimator = SRTT + 4 * RTTVAR
	// C3: RTTVAR = 3/4 * 50 + 1/4 * |100 - 180| = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110.
	h.sample(180 * ms)
	h.want(110*ms + 4*57_500_000)
	if got := h.r.SRTT(); got != 110*ms {
		t.Errorf("SRTT = %v, want %v", got, 110*ms)
	}
}

// C6: "if it is less than 'Estimator.Min' seconds, then it is rounded up".
func TestRTOIsNotBelowMin(t *testing.T) {
	h := newRTOTest(t, 0, 0, 0)
	h.sample(2 * ms)
	h.want(second)
}

// G1: "if RTTVAR == 0, then adjust RTTVAR = G".
func TestRTTVarIsNeverZero(t *testing.T) {
	h := newRTOTest(t, second, 1, 60*second)
	for range 200 {
		h.r.Sample(ms)
	}
	if got := h.r.Var(); got == 0 {
		t.Error("RTTVAR = 0 after equal samples")
	}
	if got := h.r.Value(); got <= ms {
		t.Errorf("RTO = %v, not above the round-trip time", got)
	}
}

// E2: "set Estimator = Estimator * 2 ('back off the timer')", bounded by Estimator.Max (C7); a new
// measurement "might result in 'collapsing' Estimator back down".
func TestRTOBacksOffOnTimeout(t *testing.T) {
	h := newRTOTest(t, second, second, 5*second)
	h.expire()
	h.want(2 * second)
	h.expire()
	h.want(4 * second)
	h.expire()
	h.want(5 * second)
	if got := h.r.Backoffs(); got != 3 {
		t.Errorf("Backoffs = %d, want 3", got)
	}
	h.sample(10 * ms)
	h.want(second)
}

func TestRTOLimitsChange(t *testing.T) {
	h := newRTOTest(t, second, second, 60*second)
	h.r.SetLimits(300*ms, 10*ms, 0)
	h.want(300 * ms)
	h.sample(4 * ms)
	h.want(12 * ms)
	h.r.SetLimits(0, 50*ms, 0)
	h.want(50 * ms)
	h.r.Reset()
	h.want(300 * ms)
}

func TestRTOTakesNonsense(t *testing.T) {
	h := newRTOTest(t, -1, 10*second, second)
	h.want(10 * second)
	h.sample(-5)
	h.sample(0)
	if h.r.SRTT() <= 0 {
		t.Errorf("SRTT = %v after samples that are not positive", h.r.SRTT())
	}
}
