package cc

import (
	"math"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"pgregory.net/rapid"
)

// bbrLine drives BBR over a line in turns of a millisecond. It carries rate bytes per
// second, its queue is as long as it takes, and it takes ccRTT there and back.
type bbrLine struct {
	*ccTest
	b     *bbr
	rate  int64
	wait  []bbrPacket
	queue clock.Time // until when the line is busy
}

type bbrPacket struct {
	sent, acked clock.Time
}

func newBBRLine(t *testing.T, rate int64) *bbrLine {
	h := newCCTest(t, Config{Algorithm: BBR})
	return &bbrLine{ccTest: h, b: h.cc.(*bbr), rate: rate}
}

// run sends for d by window and rate, at most most bytes.
func (l *bbrLine) run(d clock.Time, most int) {
	credit := 0.0
	for end := l.now + d; l.now < end; l.now += ms {
		for len(l.wait) > 0 && l.wait[0].acked <= l.now {
			l.rtt = l.now - l.wait[0].sent
			l.wait = l.wait[1:]
			l.ack(ccMTU)
		}
		if r := l.cc.PacingRate(); r > 0 {
			credit = min(credit+float64(r)/1000, float64(r)/500+ccMTU)
		} else {
			credit = math.MaxInt32
		}
		for l.flight < l.cc.Cwnd() && credit >= ccMTU && most >= ccMTU {
			credit, most = credit-ccMTU, most-ccMTU
			l.queue = max(l.queue, l.now) + clock.Time(ccMTU*int64(second)/l.rate)
			l.wait = append(l.wait, bbrPacket{l.now, l.queue + ccRTT})
			l.send(ccMTU)
		}
	}
}

// near reports whether got is want, give or take a share.
func near(got, want, share float64) bool { return math.Abs(got-want) <= want*share }

// The model is the line: its rate, its round-trip time, and twice what it holds as the
// window; and the phases follow each other.
func TestBBRModelsTheLine(t *testing.T) {
	const rate = 10_000_000 // 1 MB on the line
	l := newBBRLine(t, rate)
	seen := map[phase]bool{}
	for range 300 {
		l.run(10*ms, math.MaxInt)
		seen[l.b.phase] = true
	}
	for _, p := range []phase{startup, drain, probeUp, probeDown, cruise} {
		if !seen[p] {
			t.Errorf("phase %d was not seen", p)
		}
	}
	if got := l.b.maxRate(); !near(float64(got), rate, 0.05) {
		t.Errorf("rate %d, want %d", got, int64(rate))
	}
	if got := l.b.minRTT(); !near(float64(got), float64(ccRTT), 0.03) {
		t.Errorf("round-trip time %d ms, want %d", got/ms, ccRTT/ms)
	}
	if got := l.cc.Cwnd(); !near(float64(got), 2_000_000, 0.2) {
		t.Errorf("cwnd %d, want about twice what the line holds", got)
	}
	if got := l.cc.Ssthresh(); !near(float64(got), 1_000_000, 0.1) {
		t.Errorf("ssthresh %d, want what the line holds", got)
	}
}

// Less than the line takes does not lower the rate, however long, nor end Startup.
func TestBBRIgnoresLowRatesOfTheApplication(t *testing.T) {
	l := newBBRLine(t, 10_000_000)
	l.run(3*second, math.MaxInt)
	was := l.b.maxRate()
	for range 600 {
		l.run(50*ms, 20*ccMTU)
	}
	if got := l.b.maxRate(); got < was*9/10 {
		t.Errorf("rate fell from %d to %d", was, got)
	}
	for range 3000 { // half of what the line takes, steadily
		l.run(ms, 5*ccMTU)
	}
	if got := l.b.maxRate(); got < was*9/10 {
		t.Errorf("rate fell from %d to %d for a steady sender", was, got)
	}
	l = newBBRLine(t, 10_000_000)
	for range 100 {
		l.run(50*ms, 20*ccMTU)
	}
	if l.b.phase != startup {
		t.Errorf("phase %d, though the line was never full", l.b.phase)
	}
}

// ProbeRTT comes where every round-trip time has had a queue in it for half of rttMemory, takes
// probeRTTTime or a little more with half of what the line holds, and finds the true one.
func TestBBRProbesTheRoundTripTime(t *testing.T) {
	l := newBBRLine(t, 10_000_000)
	l.run(3*second, math.MaxInt)
	l.queue = l.now + 60*ms // of another flow, which keeps it so
	var began clock.Time
	for range 900 {
		l.queue = max(l.queue, l.now+30*ms)
		l.run(10*ms, math.MaxInt)
		if l.b.phase == probeRTT {
			began = l.now
			break
		}
	}
	if began == 0 {
		t.Fatal("no ProbeRTT in 9 seconds")
	}
	least := math.MaxInt
	for l.b.phase == probeRTT {
		l.run(10*ms, math.MaxInt)
		least = min(least, l.cc.Cwnd())
	}
	if d := l.now - began; d < probeRTTTime || d > probeRTTMost+20*ms {
		t.Errorf("ProbeRTT took %d ms", d/ms)
	}
	if want := l.b.holds(100); least > want*3/4 {
		t.Errorf("window %d in it, want about half of %d", least, want)
	}
	if got := l.b.minRTT(); !near(float64(got), float64(ccRTT), 0.05) {
		t.Errorf("round-trip time %d ms after it, want %d", got/ms, ccRTT/ms)
	}
	if got := l.cc.Cwnd(); got < l.b.holds(150) {
		t.Errorf("window %d after it", got)
	}
}

// lose has n of the packets in flight lost.
func (l *bbrLine) lose(n int) {
	l.wait = l.wait[:len(l.wait)-n]
	l.flight -= n * ccMTU
	l.cc.OnLoss(l.now)
}

// A few losses leave the window, many make a bound of it, which is gone when there are
// none for a while.
func TestBBRBoundsTheWindowForManyLosses(t *testing.T) {
	l := newBBRLine(t, 10_000_000)
	l.run(3*second, math.MaxInt)
	w := l.cc.Cwnd()
	l.lose(len(l.wait) / 30)
	l.run(2*ccRTT, math.MaxInt)
	if got := l.cc.Cwnd(); got < w*9/10 {
		t.Errorf("window fell from %d to %d for 3 %% of the packets", w, got)
	}
	flight := l.flight
	l.lose(len(l.wait) / 8)
	l.run(3*ccRTT, math.MaxInt)
	if got := l.cc.Cwnd(); got > flight*8/10 {
		t.Errorf("window %d after the loss of an eighth of %d in flight", got, flight)
	}
	l.run(5*second, math.MaxInt)
	if got := l.cc.Cwnd(); got < w*9/10 {
		t.Errorf("window %d 5 s later, was %d", got, w)
	}
	l.cc.OnECN(l.now)
	if got := l.cc.Cwnd(); got > l.flight {
		t.Errorf("window %d after a congestion mark with %d in flight", got, l.flight)
	}
}

// A timeout leaves one packet. What is acknowledged of what was sent after it returns the
// window; a second timeout does not, since the path may be another one.
func TestBBRTimeouts(t *testing.T) {
	for _, timeouts := range []int{1, 2} {
		l := newBBRLine(t, 10_000_000)
		l.run(3*second, math.MaxInt)
		w := l.cc.Cwnd()
		l.wait, l.flight = nil, 0
		for range timeouts {
			l.cc.OnTimeout(l.now)
			l.wantCwnd(ccMTU)
			l.send(ccMTU)
			l.now += second
			if timeouts == 2 {
				l.flight = 0
			}
		}
		if timeouts == 2 {
			l.send(ccMTU)
		}
		l.ack(ccMTU)
		got := l.cc.Cwnd()
		if timeouts == 1 && got < w*9/10 || timeouts == 2 && got > 10*ccMTU {
			t.Errorf("window %d after %d timeouts, was %d", got, timeouts, w)
		}
		l.queue = l.now
		l.run(3*second, math.MaxInt)
		if got := l.cc.Cwnd(); got < w*9/10 {
			t.Errorf("window %d 3 s after %d timeouts, was %d", got, timeouts, w)
		}
	}
}

// A timeout that was none returns the window at once.
func TestBBRUndo(t *testing.T) {
	l := newBBRLine(t, 10_000_000)
	l.run(3*second, math.MaxInt)
	w := l.cc.Window()
	l.cc.OnTimeout(l.now)
	l.cc.Undo(w)
	l.wantCwnd(w.Cwnd)
	l.cc.OnECN(l.now)
	l.cc.Undo(w)
	if l.b.bound != 0 {
		t.Errorf("bound %d is left of a loss that was none", l.b.bound)
	}
}

// Reset forgets the path (RFC 9260, Section 7.2.5), not what is in flight on it.
func TestBBRReset(t *testing.T) {
	l := newBBRLine(t, 10_000_000)
	l.run(3*second, math.MaxInt)
	l.cc.OnECN(l.now)
	l.cc.Reset()
	l.wantCwnd(firstPackets * ccMTU)
	l.wantSsthresh(initialSsthresh)
	if r := l.cc.PacingRate(); r != 0 {
		t.Errorf("pacing rate %d", r)
	}
	l.run(2*ccRTT, 0)
	if l.flight != 0 || l.b.d.lost() != 0 {
		t.Errorf("%d in flight, %d lost", l.flight, l.b.d.lost())
	}
}

// Whatever happens, the window is of a packet at least and MaxWindow at most, rates are not
// negative, a timeout leaves one packet, and BBR allocates nothing.
func TestBBRInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 1 << 20
		c := New(Config{Algorithm: BBR, MaxWindow: most}, ccMTU)
		now, flight, mtu := second, 0, ccMTU
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if w := c.Cwnd(); w < mtu || w > max(most, mtu) {
					t.Fatalf("cwnd = %d, want %d to %d", w, mtu, most)
				}
				if r, s := c.PacingRate(), c.Ssthresh(); r < 0 || s < mtu {
					t.Fatalf("rate %d, ssthresh %d", r, s)
				}
			},
			"time": func(t *rapid.T) {
				now += clock.Time(rapid.Int64Range(0, 1<<rapid.IntRange(0, 36).Draw(t, "bits")).Draw(t, "d"))
			},
			"send": func(t *rapid.T) {
				n := rapid.IntRange(1, 64*mtu).Draw(t, "n")
				flight += n
				c.OnSent(now, n, flight)
			},
			"ack": func(t *rapid.T) {
				if flight == 0 {
					t.Skip("nothing in flight")
				}
				n := rapid.IntRange(1, flight).Draw(t, "n")
				lost := rapid.IntRange(0, flight-n).Draw(t, "lost")
				rtt := clock.Time(rapid.Int64Range(0, int64(min(now, 2*second))).Draw(t, "rtt"))
				before := flight
				flight -= n + lost
				c.OnAck(Ack{Now: now, Acked: n, FlightBefore: before, Flight: flight, CumAdvanced: true, RTT: rtt, SRTT: rtt})
			},
			"acked after lost": func(t *rapid.T) {
				c.OnAck(Ack{Now: now, Acked: rapid.IntRange(1, 64*mtu).Draw(t, "n"), FlightBefore: flight, Flight: flight})
			},
			"loss": func(t *rapid.T) { flight -= rapid.IntRange(0, flight).Draw(t, "n"); c.OnLoss(now) },
			"mark": func(*rapid.T) { c.OnECN(now) },
			"timeout": func(t *rapid.T) {
				flight = 0
				c.OnTimeout(now)
				if c.Cwnd() != mtu {
					t.Fatalf("cwnd = %d after a timeout, want %d", c.Cwnd(), mtu)
				}
			},
			"idle":  func(*rapid.T) { c.OnIdle(second, second) },
			"undo":  func(*rapid.T) { w := c.Window(); c.OnTimeout(now); flight = 0; c.Undo(w) },
			"mtu":   func(t *rapid.T) { mtu = rapid.IntRange(500, 9000).Draw(t, "mtu"); c.SetMTU(mtu) },
			"reset": func(*rapid.T) { c.Reset() },
		})
	})
	l := newBBRLine(t, 10_000_000)
	l.run(second, math.MaxInt)
	if n := testing.AllocsPerRun(1000, func() {
		l.now += ms
		l.send(ccMTU)
		l.ack(ccMTU)
	}); n != 0 {
		t.Errorf("%v allocations per packet", n)
	}
}
