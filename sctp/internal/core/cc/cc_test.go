package cc

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// ccTest drives a congestion control one verb per step, on a path of 100 ms.
type ccTest struct {
	t      *testing.T
	cc     Control
	now    clock.Time
	flight int
	rtt    clock.Time // what each round takes
}

const (
	ms     clock.Time = 1_000_000
	second            = 1000 * ms

	ccMTU = 1000
	ccRTT = 100 * ms
)

func newCCTest(t *testing.T, c Config) *ccTest {
	return &ccTest{t: t, cc: New(c, ccMTU), now: second, rtt: ccRTT}
}

// fill sends until the window is used up.
func (h *ccTest) fill() { h.send(max(h.cc.Cwnd()-h.flight, 0)) }

func (h *ccTest) send(n int) {
	h.flight += n
	h.cc.OnSent(h.now, n, h.flight)
}

func (h *ccTest) ack(n int) { h.ackIn(n, false) }

func (h *ccTest) ackIn(n int, recovery bool) {
	before := h.flight
	h.flight -= n
	h.cc.OnAck(Ack{Now: h.now, Acked: n, FlightBefore: before, Flight: h.flight,
		CumAdvanced: true, InRecovery: recovery, RTT: h.rtt, SRTT: h.rtt})
}

// round sends a window and has it acknowledged, one SACK for two packets.
func (h *ccTest) round() {
	h.fill()
	w := h.flight
	h.now += h.rtt
	for got := 0; got < w; got += 2 * ccMTU {
		h.ack(min(2*ccMTU, w-got))
		h.fill()
	}
}

func (h *ccTest) wantCwnd(want int) {
	h.t.Helper()
	if got := h.cc.Cwnd(); got != want {
		h.t.Fatalf("cwnd = %d, want %d", got, want)
	}
}

func (h *ccTest) wantSsthresh(want int) {
	h.t.Helper()
	if got := h.cc.Ssthresh(); got != want {
		h.t.Fatalf("ssthresh = %d, want %d", got, want)
	}
}

// RFC 9260, Section 7.2.1: "The initial cwnd before data transmission MUST be set
// to min(4 * PMDCS, max(2 * PMDCS, 4404)) bytes if the peer address is an IPv4
// address and to min(4 * PMDCS, max(2 * PMDCS, 4344)) bytes if [...] IPv6".
func TestInitialWindow(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    Config
		mtu  int
		want int
	}{
		{"small", Config{}, 500, 2000},
		{"ethernet", Config{}, 1460, 4404},
		{"ethernet IPv6", Config{IPv6: true}, 1440, 4344},
		{"jumbo", Config{}, 9000, 18000},
		{"ten packets", Config{InitialPackets: 10}, 1460, 14600},
		{"ten packets, bounded", Config{InitialPackets: 10, MaxWindow: 8000}, 1460, 8000},
	} {
		for _, alg := range []Algorithm{NewReno, Cubic} {
			tt.c.Algorithm = alg
			cc := New(tt.c, tt.mtu)
			if got := cc.Cwnd(); got != tt.want {
				t.Errorf("%s, %s: initial cwnd = %d, want %d", tt.name, cc.Name(), got, tt.want)
			}
		}
	}
}

// Section 7.2.1: cwnd grows "by, at most, the lesser of the total size of the
// previously outstanding DATA chunk(s) acknowledged, and L times the
// destination's PMDCS".
func TestSlowStartGrowsByLesserOfAckedAndL(t *testing.T) {
	h := newCCTest(t, Config{Algorithm: NewReno, SlowStartL: 2})
	h.wantCwnd(4000)
	h.fill()
	h.ack(500)
	h.wantCwnd(4500)
	h.fill()
	h.ack(4000)
	h.wantCwnd(6500)
}

// "only if the current congestion window is being fully utilized and the data
// sender is not in Fast Recovery".
func TestSlowStartNeedsFullWindowOutsideRecovery(t *testing.T) {
	h := newCCTest(t, Config{Algorithm: NewReno})
	h.send(2000)
	h.ack(1000)
	h.wantCwnd(4000)
	h.fill()
	h.ackIn(1000, true)
	h.wantCwnd(4000)
}

// The window counts as fully utilized if it was when the chunks acknowledged were
// sent: SACKs that come in a burst all count, though the pacer lets nothing out
// between them, and those of a sender that has little to send do not.
func TestFullUseIsThatOfTheRound(t *testing.T) {
	for _, alg := range []Algorithm{NewReno, Cubic} {
		h := newCCTest(t, Config{Algorithm: alg})
		h.fill()
		h.now += ccRTT
		for range 4 {
			h.ack(1000)
		}
		h.wantCwnd(8000)
		h.send(4000)
		h.now += ccRTT
		h.now++ // the last use of the whole window is more than a round trip ago
		for range 4 {
			h.ack(1000)
		}
		h.wantCwnd(8000)
	}
}

// After a timeout the window is one packet, and the peer delays the SACK of it:
// much longer than the round trip, of which retransmissions tell nothing.
func TestWindowGrowsOnDelayedSacksAfterTimeout(t *testing.T) {
	for _, alg := range []Algorithm{NewReno, Cubic} {
		h := newCCTest(t, Config{Algorithm: alg, InitialPackets: 20})
		h.fill()
		h.flight = 0
		h.cc.OnTimeout(h.now)
		h.wantCwnd(1000)
		for _, want := range []int{2000, 4000, 8000} {
			h.fill()
			n := h.flight
			h.now += 3 * ccRTT
			h.ack(n)
			h.wantCwnd(want)
		}
	}
}

// Section 7.2.2: "SCTP MUST NOT increment cwnd by more than PMDCS per RTT", by
// way of partial_bytes_acked.
func TestCongestionAvoidanceAddsOnePacketPerRTT(t *testing.T) {
	h := newCCTest(t, Config{Algorithm: NewReno, InitialPackets: 20})
	h.cc.OnLoss(h.now) // ssthresh = cwnd = 10000
	h.wantCwnd(10000)
	h.fill()
	h.ack(1000) // slow start while cwnd <= ssthresh
	h.wantCwnd(11000)
	start := h.cc.Cwnd()
	for i := 1; i <= 5; i++ {
		h.round()
		if got, want := h.cc.Cwnd(), start+i*ccMTU; got > want || got < want-ccMTU {
			t.Fatalf("cwnd after %d round trips = %d, want about %d", i, got, want)
		}
	}
	if h.cc.Cwnd() < start+4*ccMTU {
		t.Fatalf("cwnd after 5 round trips = %d, grew too slowly from %d", h.cc.Cwnd(), start)
	}
	// "When (1) partial_bytes_acked is greater than cwnd and (2) before the
	// arrival of the SACK chunk the sender had less than cwnd bytes of data
	// outstanding": no growth.
	h.ack(h.flight)
	w := h.cc.Cwnd()
	for range 40 {
		h.send(2000)
		h.ack(2000)
	}
	h.wantCwnd(w)
}

// Section 7.2.3: "ssthresh = max(cwnd / 2, 4 * PMDCS), cwnd = ssthresh" on loss;
// "cwnd = PMDCS" when T3-rtx expires.
func TestReactionToLossAndTimeout(t *testing.T) {
	h := newCCTest(t, Config{Algorithm: NewReno, InitialPackets: 20})
	h.cc.OnLoss(h.now)
	h.wantCwnd(10000)
	h.wantSsthresh(10000)
	h.cc.OnLoss(h.now)
	h.cc.OnLoss(h.now)
	h.wantCwnd(4000)
	h.cc.OnTimeout(h.now)
	h.wantCwnd(1000)
	h.wantSsthresh(4000)
	h.cc.Reset()
	h.wantCwnd(20000)
}

// Section 7.2.1: "While the endpoint does not transmit data on a given transport
// address, the cwnd of the transport address SHOULD be adjusted to max(cwnd / 2,
// 4 * PMDCS) once per RTO. Before the first cwnd adjustment, the ssthresh of the
// transport address SHOULD be set to the cwnd."
func TestIdleDecay(t *testing.T) {
	for _, alg := range []Algorithm{NewReno, Cubic} {
		h := newCCTest(t, Config{Algorithm: alg, InitialPackets: 32})
		h.cc.OnIdle(999*ms, second)
		h.wantCwnd(32000)
		h.cc.OnIdle(second, second)
		h.wantCwnd(16000)
		h.wantSsthresh(32000)
		h.cc.OnIdle(10*second, second)
		h.wantCwnd(4000)
		h.cc.OnTimeout(h.now)
		h.cc.OnIdle(10*second, second)
		h.wantCwnd(1000) // never larger than it was
	}
}

// RFC 9438, Section 4.6: ssthresh is cwnd times β = 0.7.
func TestCubicReducesByBeta(t *testing.T) {
	h := newCCTest(t, Config{InitialPackets: 100})
	h.cc.OnLoss(h.now)
	h.wantCwnd(70000)
	h.wantSsthresh(70000)
	h.cc.OnTimeout(h.now)
	h.wantCwnd(1000)
	h.wantSsthresh(49000)
	// Slow start after a timeout goes up to there.
	for range 5 {
		h.round()
	}
	h.wantSsthresh(49000)
	if got := h.cc.Cwnd(); got < 16_000 {
		t.Errorf("cwnd after 5 round trips of slow start = %d", got)
	}
}

// RFC 5681, Section 3.1: a timeout right after another leaves ssthresh alone; not one after
// something was acknowledged.
func TestCubicTimeoutsInARow(t *testing.T) {
	h := newCCTest(t, Config{InitialPackets: 100})
	h.cc.OnTimeout(h.now)
	h.cc.OnTimeout(h.now)
	h.wantCwnd(1000)
	h.wantSsthresh(70000)
	for range 4 {
		h.round()
	}
	w := h.cc.Cwnd()
	if w <= 10*ccMTU {
		t.Fatalf("cwnd is %d after 4 round trips", w)
	}
	h.cc.OnTimeout(h.now)
	h.wantSsthresh(w * 7 / 10)
}

// The first loss of a small flow leaves it in slow start: one that has hardly begun, or one
// that finds a queue.
func TestCubicSparesSmallFlows(t *testing.T) {
	for _, tt := range []struct {
		name    string
		packets int
		queue   clock.Time
		losses  int
		want    bool
	}{
		{"young", youngPackets, 0, 1, true},
		{"young, second loss", youngPackets, 0, 2, false},
		{"no longer young", youngPackets + 1, 0, 1, false},
		{"small and a queue", smallPackets, 60 * ms, 1, true},
		{"small and a queue, second loss", smallPackets, 60 * ms, 2, false},
		{"small and hardly a queue", smallPackets, 3 * ms, 1, false},
		{"large and a queue", smallPackets + 1, 60 * ms, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newCCTest(t, Config{InitialPackets: tt.packets, NoHyStart: true})
			h.held(20*ms, ccMTU, true)
			for range 3 {
				h.held(20*ms+tt.queue, ccMTU, true)
			}
			w := h.cc.Cwnd()
			for range tt.losses {
				w = h.cc.Cwnd()
				h.cc.OnLoss(h.now)
			}
			if got := h.cc.Ssthresh() == initialSsthresh; got != tt.want {
				t.Errorf("ssthresh is %d after the loss", h.cc.Ssthresh())
			}
			if tt.want {
				h.wantCwnd(w * 7 / 10)
			}
		})
	}
}

// RFC 9438, Section 4.2: the window is back at W_max after K = cbrt(W_max (1-β) /
// C) seconds, flat there, and convex afterwards.
func TestCubicCurve(t *testing.T) {
	h := newCCTest(t, Config{InitialPackets: 1000})
	h.cc.OnLoss(h.now) // W_max 1000, K = cbrt(1000*0.3/0.4) = 9.09 s
	start := h.now
	var atK, at2K, first int
	for h.now-start < 19*second {
		h.round()
		switch d := h.now - start; {
		case d == 2*second:
			first = h.cc.Cwnd()
		case d == 9*second:
			atK = h.cc.Cwnd()
		case d == 18*second:
			at2K = h.cc.Cwnd()
		}
	}
	// W_cubic(2 s) = 0.4 (2-9.09)^3 + 1000 = 857.
	if first < 830_000 || first > 880_000 {
		t.Errorf("cwnd 2 s after the loss = %d, want about 857000", first)
	}
	if atK < 985_000 || atK > 1_010_000 {
		t.Errorf("cwnd 9 s after the loss = %d, want about 1000000", atK)
	}
	// W_cubic(18 s) = 0.4 * 8.91^3 + 1000 = 1283.
	if at2K < 1_250_000 || at2K > 1_320_000 {
		t.Errorf("cwnd 18 s after the loss = %d, want about 1283000", at2K)
	}
}

// RFC 9438, Section 4.3: on short paths CUBIC grows no slower than Reno.
func TestCubicIsRenoFriendly(t *testing.T) {
	h := newCCTest(t, Config{InitialPackets: 20})
	h.cc.OnLoss(h.now)
	start := h.cc.Cwnd()
	for range 10 {
		h.round()
	}
	// α is 0.53 packets per round trip until cwnd_prior, then 1.
	if got := h.cc.Cwnd() - start; got < 5*ccMTU {
		t.Errorf("cwnd grew by %d in 10 round trips, want at least 5 packets", got)
	}
}

// Fast convergence (Section 4.7): a second loss below W_max lowers W_max further.
func TestCubicFastConvergence(t *testing.T) {
	c := new(CubicControl).init(Config{InitialPackets: 100, SlowStartL: 1, MaxWindow: 1 << 30}, ccMTU)
	c.OnLoss(second)
	c.OnLoss(second)
	if want := 70 * (1 + 0.7) / 2; c.wMax != want {
		t.Errorf("W_max = %v, want %v", c.wMax, want)
	}
}

// RFC 8312, Section 5.8, and RFC 9438: time in which the application limits the
// sender does not count in W_cubic(t), nor does a pause.
func TestCubicIdleTimeDoesNotCount(t *testing.T) {
	for _, pause := range []bool{false, true} {
		h := newCCTest(t, Config{InitialPackets: 1000})
		h.cc.OnLoss(h.now)
		for range 10 {
			h.round()
		}
		h.ack(h.flight)
		was := h.cc.Cwnd()
		if pause {
			h.now += 20 * second
			h.cc.OnIdle(20*second, second)
			for range 20 { // slow start, up to where it was
				if h.cc.Cwnd() < was {
					h.round()
				}
			}
		} else {
			for range 200 {
				h.send(2 * ccMTU)
				h.now += ccRTT
				h.ack(2 * ccMTU)
			}
			if got := h.cc.Cwnd(); got > was+ccMTU {
				t.Errorf("cwnd grew from %d to %d without being used", was, got)
			}
		}
		h.round()
		h.round()
		// The curve has 9 % more after a second, and 100 % after 20.
		if got := h.cc.Cwnd(); got < was || got > was*6/5 {
			t.Errorf("pause %v: cwnd is %d after it, was %d", pause, got, was)
		}
	}
}

// HyStart++ (RFC 9406): slow start ends without a loss once round-trip times
// rise.
func TestHyStartEndsSlowStartOnRisingRTT(t *testing.T) {
	run := func(rise clock.Time) int {
		h := newCCTest(t, Config{InitialPackets: 32})
		for i := range 12 {
			if i > 2 {
				h.rtt += rise
			}
			h.round()
		}
		return h.cc.Ssthresh()
	}
	if got := run(0); got != initialSsthresh {
		t.Errorf("ssthresh = %d though the round-trip time is steady", got)
	}
	if got := run(30 * ms); got == initialSsthresh {
		t.Error("slow start goes on though the round-trip time rises")
	}
}

// Where round-trip times have risen for good, the window is at the end of slow start
// what it was when that was first seen.
func TestConservativeSlowStartIsTakenBack(t *testing.T) {
	h := newCCTest(t, Config{InitialPackets: 32})
	c := h.cc.(*CubicControl)
	began, most := 0, 0
	for i := range 20 {
		if i == 3 {
			h.rtt += 30 * ms
		}
		h.fill()
		h.now += h.rtt
		for w := h.flight; w > 0 && c.ssthresh == initialSsthresh; w -= 2 * ccMTU {
			cwnd := c.cwnd
			h.ack(min(2*ccMTU, w))
			if c.hystart.css && began == 0 {
				began = cwnd
			}
			most = max(most, c.cwnd)
			h.fill()
		}
	}
	if began == 0 || most < 2*began {
		t.Fatalf("conservative slow start began at %d and came to %d", began, most)
	}
	if c.cwnd != began || c.ssthresh != began {
		t.Errorf("cwnd = %d, ssthresh = %d, want %d", c.cwnd, c.ssthresh, began)
	}
}

// What an earlier slow start saw of the queue does not shrink a window that has grown
// since, after a pause.
func TestHyStartIsForTheInitialSlowStart(t *testing.T) {
	h := newCCTest(t, Config{})
	c := h.cc.(*CubicControl)
	c.hystart.css, c.hystart.cssBase, c.hystart.cssRounds, c.hystart.window = true, 0, hystartRounds-1, 5*ccMTU
	c.cwnd = 100 * ccMTU
	c.OnIdle(second, 200*ms)
	if c.cwnd >= c.ssthresh || c.ssthresh != 100*ccMTU {
		t.Fatalf("cwnd = %d, ssthresh = %d after a pause", c.cwnd, c.ssthresh)
	}
	for range 20 {
		h.round()
	}
	if c.cwnd < 100*ccMTU {
		t.Errorf("cwnd = %d, ssthresh = %d, want more than the %d before", c.cwnd, c.ssthresh, 100*ccMTU)
	}
}

// Where packets have become longer, slow start ends with four of them at least, as
// after a loss.
func TestConservativeSlowStartLeavesFourPackets(t *testing.T) {
	h := newCCTest(t, Config{})
	c := h.cc.(*CubicControl)
	c.cwnd = 20 * ccMTU
	c.hystart.css, c.hystart.cssRounds, c.hystart.window = true, hystartRounds-1, 10*ccMTU
	c.SetMTU(4 * ccMTU)
	h.fill()
	h.ack(h.flight)
	if want := 4 * 4 * ccMTU; c.cwnd != want || c.ssthresh != want {
		t.Errorf("cwnd = %d, ssthresh = %d, want %d", c.cwnd, c.ssthresh, want)
	}
}

func TestWindowIsBounded(t *testing.T) {
	for _, alg := range []Algorithm{NewReno, Cubic, BBR} {
		h := newCCTest(t, Config{Algorithm: alg, MaxWindow: 50_000})
		for range 200 {
			h.round()
			if h.cc.Cwnd() > 50_000 {
				t.Fatalf("%s: cwnd = %d, above MaxWindow", h.cc.Name(), h.cc.Cwnd())
			}
		}
		h.wantCwnd(50_000)
	}
}

func TestMTUChangeKeepsWindowUsable(t *testing.T) {
	for _, alg := range []Algorithm{NewReno, Cubic, BBR} {
		cc := New(Config{Algorithm: alg}, 1000)
		cc.OnTimeout(second)
		cc.SetMTU(9000)
		if cc.Cwnd() < 9000 {
			t.Errorf("%s: cwnd = %d, less than one packet", cc.Name(), cc.Cwnd())
		}
	}
}
