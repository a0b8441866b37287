package cc

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// rounds has a window acknowledged for so many round trips of the given time,
// without growth: the application is what limits the sender.
func (h *ccTest) rounds(n int, rtt clock.Time) {
	for range n {
		h.now += rtt
		for range 4 {
			h.cc.OnAck(Ack{Now: h.now, Acked: ccMTU, FlightBefore: 2 * ccMTU, Flight: ccMTU, CumAdvanced: true, RTT: rtt, SRTT: rtt})
		}
	}
}

// samples has n packets acknowledged at this moment, with the given time.
func (h *ccTest) samples(n int, rtt clock.Time) {
	for range n {
		h.cc.OnAck(Ack{Now: h.now, Acked: ccMTU, FlightBefore: 2 * ccMTU, Flight: ccMTU, CumAdvanced: true, RTT: rtt, SRTT: rtt})
	}
}

// held has a window acknowledged in a round trip, n bytes for each of its packets, without
// growth: the path is in recovery. The window is used up if full says so.
func (h *ccTest) held(rtt clock.Time, n int, full bool) {
	w := h.cc.Cwnd()
	for range w / ccMTU {
		h.now += rtt / clock.Time(w/ccMTU)
		if full {
			h.cc.OnSent(h.now, ccMTU, w)
		}
		h.cc.OnAck(Ack{Now: h.now, Acked: n, FlightBefore: w, Flight: w, CumAdvanced: true, InRecovery: true, RTT: rtt, SRTT: rtt})
	}
}

// A loss takes less of the window where round-trip times tell that no packet waits
// in a queue, and what RFC 9438 says where there is a queue, where that is not
// known, and for congestion marks.
func TestCubicTellsLossesFromCongestion(t *testing.T) {
	const whole, mild, full = 100_000, 93_750, 70_000
	for _, tt := range []struct {
		name string
		run  func(h *ccTest)
		want int
	}{
		{"no queue", func(h *ccTest) { h.rounds(5, ccRTT); h.cc.OnLoss(h.now) }, mild},
		{"times that scatter", func(h *ccTest) { h.rounds(5, ccRTT); h.rounds(2, ccRTT*106/100); h.cc.OnLoss(h.now) }, mild},
		{"a queue", func(h *ccTest) { h.rounds(5, ccRTT); h.rounds(2, ccRTT*107/100); h.cc.OnLoss(h.now) }, full},
		{"a queue that has gone", func(h *ccTest) { h.rounds(5, ccRTT); h.rounds(2, 2*ccRTT); h.rounds(2, ccRTT); h.cc.OnLoss(h.now) }, mild},
		{"a queue until a moment ago", func(h *ccTest) { h.rounds(5, ccRTT); h.rounds(2, 2*ccRTT); h.rounds(1, ccRTT); h.cc.OnLoss(h.now) }, full},
		{"nothing known", func(h *ccTest) { h.cc.OnLoss(h.now) }, full},
		{"one round trip known", func(h *ccTest) { h.rounds(1, ccRTT); h.cc.OnLoss(h.now) }, full},
		{"a longer route", func(h *ccTest) { h.rounds(5, ccRTT); h.rounds(int(queueMemory/ccRTT)+1, 2*ccRTT); h.cc.OnLoss(h.now) }, mild},
		{"silence, then a longer route", func(h *ccTest) {
			h.rounds(5, ccRTT)
			h.now += queueMemory
			h.rounds(3, 2*ccRTT)
			h.cc.OnLoss(h.now)
		}, mild},
		{"the first of many times that scatter", func(h *ccTest) {
			for range 5 {
				h.rounds(1, ccRTT)
				h.samples(4*fewSamples-4, 2*ccRTT) // the least of a round trip is that of the line
			}
			h.rounds(1, ccRTT*107/100)
			h.cc.OnLoss(h.now)
		}, mild},
		{"enough times of a queue", func(h *ccTest) {
			for range 5 {
				h.rounds(1, ccRTT)
				h.samples(4*fewSamples-4, 2*ccRTT)
			}
			h.rounds(1, ccRTT*107/100)
			h.samples(fewSamples-4, ccRTT*107/100)
			h.cc.OnLoss(h.now)
		}, full},
		{"a mark", func(h *ccTest) { h.rounds(5, ccRTT); h.cc.OnECN(h.now) }, full},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newCCTest(t, Config{InitialPackets: whole / ccMTU})
			c := h.cc.(*CubicControl)
			c.ssthresh = whole // past slow start
			tt.run(h)
			h.wantCwnd(tt.want)
			h.wantSsthresh(tt.want)
		})
	}
	h := newCCTest(t, Config{InitialPackets: whole / ccMTU})
	h.rounds(5, ccRTT)
	h.cc.OnLoss(h.now) // in slow start
	h.wantCwnd(full)
}

// Where slow start has filled the queue, a loss leaves what is on the line; but no
// more than otherwise, and only if the window was used.
func TestCubicLeavesSlowStartForItsShareOfTheLine(t *testing.T) {
	const window = 100 * ccMTU
	for _, tt := range []struct {
		name      string
		base, rtt clock.Time
		full      bool
		want      int
	}{
		{"long queue", 20 * ms, 80 * ms, true, window / 4},
		{"short queue", 20 * ms, 25 * ms, true, window * 7 / 10},
		{"hardly a queue", 2 * ms, 5 * ms, true, window * 7 / 10},
		{"application limits", 20 * ms, 80 * ms, false, window * 7 / 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newCCTest(t, Config{InitialPackets: 100, NoHyStart: true})
			h.held(tt.base, ccMTU/4, tt.full)
			for range 4 {
				h.held(tt.rtt, ccMTU, tt.full)
			}
			if c := h.cc.(*CubicControl); c.cwnd != window || c.cwnd >= c.ssthresh {
				t.Fatalf("window %d, want %d and slow start", c.cwnd, window)
			}
			h.cc.OnLoss(h.now)
			if got := h.cc.Cwnd(); got < tt.want*97/100 || got > tt.want*103/100 {
				t.Errorf("window %d after the loss, want about %d", got, tt.want)
			}
		})
	}
}

// After a loss without a queue the window of a short path grows by a packet per
// round trip, as that of Reno, which is what random losses leave it of the line.
func TestCubicGrowsOnAfterRandomLoss(t *testing.T) {
	const rtt = 10 * ms // Reno's region
	h := newCCTest(t, Config{InitialPackets: 40})
	h.cc.(*CubicControl).ssthresh = 40 * ccMTU
	h.rounds(5, rtt)
	h.cc.OnLoss(h.now)
	h.flight = 0
	before := h.cc.Cwnd()
	const n = 20
	for range n {
		h.fill()
		w := h.flight
		h.now += rtt
		for got := 0; got < w; got += 2 * ccMTU {
			f := h.flight
			h.flight -= min(2*ccMTU, w-got)
			h.cc.OnAck(Ack{Now: h.now, Acked: f - h.flight, FlightBefore: f, Flight: h.flight, CumAdvanced: true, RTT: rtt, SRTT: rtt})
		}
	}
	if got := h.cc.Cwnd() - before; got < (n-2)*ccMTU || got > (n+2)*ccMTU {
		t.Errorf("%d round trips added %d bytes, want about %d", n, got, n*ccMTU)
	}
}
