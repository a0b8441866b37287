package core

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

const (
	rtoMs     clock.Time = 1_000_000
	rtoSecond            = 1000 * rtoMs
)

// rtoTest drives an RTO one verb per step.
type rtoTest struct {
	t *testing.T
	r RTO
}

func newRTOTest(t *testing.T, initial, lo, hi clock.Time) *rtoTest {
	return &rtoTest{t, NewRTO(initial, lo, hi)}
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
	h := newRTOTest(t, rtoSecond, 1*rtoMs, 60*rtoSecond)
	h.want(rtoSecond) // C1
	h.sample(100 * rtoMs)
	h.want(100*rtoMs + 4*50*rtoMs) // C2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 * RTTVAR
	// C3: RTTVAR = 3/4 * 50 + 1/4 * |100 - 180| = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110.
	h.sample(180 * rtoMs)
	h.want(110*rtoMs + 4*57_500_000)
	if got := h.r.SRTT(); got != 110*rtoMs {
		t.Errorf("SRTT = %v, want %v", got, 110*rtoMs)
	}
}

// C6: "if it is less than 'RTO.Min' seconds, then it is rounded up".
func TestRTOIsNotBelowMin(t *testing.T) {
	h := newRTOTest(t, 0, 0, 0)
	h.sample(2 * rtoMs)
	h.want(rtoSecond)
}

// G1: "if RTTVAR == 0, then adjust RTTVAR = G".
func TestRTTVarIsNeverZero(t *testing.T) {
	h := newRTOTest(t, rtoSecond, 1, 60*rtoSecond)
	for range 200 {
		h.r.Sample(rtoMs)
	}
	if got := h.r.Var(); got == 0 {
		t.Error("RTTVAR = 0 after equal samples")
	}
	if got := h.r.Value(); got <= rtoMs {
		t.Errorf("RTO = %v, not above the round-trip time", got)
	}
}

// E2: "set RTO = RTO * 2 ('back off the timer')", bounded by RTO.Max (C7); a new
// measurement "might result in 'collapsing' RTO back down".
func TestRTOBacksOffOnTimeout(t *testing.T) {
	h := newRTOTest(t, rtoSecond, rtoSecond, 5*rtoSecond)
	h.expire()
	h.want(2 * rtoSecond)
	h.expire()
	h.want(4 * rtoSecond)
	h.expire()
	h.want(5 * rtoSecond)
	if got := h.r.Backoffs(); got != 3 {
		t.Errorf("Backoffs = %d, want 3", got)
	}
	h.sample(10 * rtoMs)
	h.want(rtoSecond)
}

func TestRTOLimitsChange(t *testing.T) {
	h := newRTOTest(t, rtoSecond, rtoSecond, 60*rtoSecond)
	h.r.SetLimits(300*rtoMs, 10*rtoMs, 0)
	h.want(300 * rtoMs)
	h.sample(4 * rtoMs)
	h.want(12 * rtoMs)
	h.r.SetLimits(0, 50*rtoMs, 0)
	h.want(50 * rtoMs)
	h.r.Reset()
	h.want(300 * rtoMs)
}

func TestRTOTakesNonsense(t *testing.T) {
	h := newRTOTest(t, -1, 10*rtoSecond, rtoSecond)
	h.want(10 * rtoSecond)
	h.sample(-5)
	h.sample(0)
	if h.r.SRTT() <= 0 {
		t.Errorf("SRTT = %v after samples that are not positive", h.r.SRTT())
	}
}
