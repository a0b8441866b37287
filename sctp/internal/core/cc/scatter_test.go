package cc

import (
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// On a short path where round-trip times scatter, a loss takes little of the window
// if losses fall on all of them, and what RFC 9438 says if they fall on the longest,
// if the queue is never short, and on a longer path.
func TestCubicTellsRandomLossesByTheirTimes(t *testing.T) {
	const window = 100_000
	noise := func(r *rand.Rand) clock.Time { return 100_000 + clock.Time(r.ExpFloat64()*200_000) }
	for _, tt := range []struct {
		name string
		rtt  func(r *rand.Rand) clock.Time // of a moment without a loss
		lost func(r *rand.Rand) clock.Time // and with one
		base clock.Time
		want float64
	}{
		{"random", noise, noise, 80_000, shortBeta},
		{"at the longest", noise, func(r *rand.Rand) clock.Time { return 300_000 + noise(r) }, 80_000, cubicBeta},
		{"longer path", func(r *rand.Rand) clock.Time { return 2*ms + noise(r) }, func(r *rand.Rand) clock.Time { return 2*ms + noise(r) }, 2 * ms, cubicBeta},
		{"full queue", func(r *rand.Rand) clock.Time { return 200_000 + noise(r) }, func(r *rand.Rand) clock.Time { return 200_000 + noise(r) }, 80_000, cubicBeta},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			var mild, all int
			c := new(CubicControl).init(Config{InitialPackets: window / ccMTU}.withDefaults(), ccMTU)
			now := second
			ack := func(rtt clock.Time) {
				now += rtt
				c.OnAck(Ack{Now: now, Acked: ccMTU, FlightBefore: 2 * ccMTU, Flight: ccMTU, CumAdvanced: true, RTT: rtt, SRTT: rtt})
			}
			ack(tt.base)
			for loss := range 200 {
				for range 30 {
					ack(tt.rtt(r))
				}
				for range 3 {
					ack(tt.lost(r))
				}
				c.cwnd, c.ssthresh = window, window
				c.OnLoss(now)
				switch {
				case loss < 2*scatterMemory && tt.want == shortBeta:
				case c.cwnd == window*31/32:
					mild++
					fallthrough
				default:
					all++
				}
			}
			share := float64(mild) / float64(all)
			t.Logf("%.2f of losses were taken for random, mean place %.2f", share, c.queue.lost.place)
			if tt.want == shortBeta && share < 0.8 || tt.want == cubicBeta && share > 0.2 {
				t.Errorf("%.2f of losses were taken for random", share)
			}
		})
	}
}

// Before some losses are known they count as congestion, and after a pause of the
// flow old times do not tell that the queue is short.
func TestCubicWaitsForLossesToTell(t *testing.T) {
	var s scatter
	now := second
	feed := func(n int, rtt clock.Time) {
		for range n {
			now += ms
			s.onAck(now, rtt, 2*scatterBytes)
		}
	}
	if feed(scatterFew, 100_000); s.even(100_000) {
		t.Error("random without a loss")
	}
	first := 0
	for i := 1; i <= 30; i++ {
		feed(4, 100_000) // all alike: in the middle
		if s.onLoss(); first == 0 && s.even(100_000) {
			first = i
		}
	}
	if first < 3 || first > 12 {
		t.Errorf("random from loss %d on, want some before that, but not many", first)
	}
	now += scatterSpan
	if feed(1, ms); s.even(100_000) {
		t.Error("random although the only time known of late is long")
	}
	if feed(1, 100_000); !s.even(100_000) {
		t.Error("not random although the queue is short again")
	}
}
