package sctp_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/bench"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Flows with BBR share a line, and beside those with CUBIC neither starves.
func TestBBRSharesTheLine(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("half a million packets: takes a minute with the race detector")
	}
	bbr, cubic := sctp.Config{Congestion: sctp.BBR}, sctp.Config{}
	const rtt, rate = 18 * time.Millisecond, 200_000_000 // which hold 450 kB
	for _, tt := range []struct {
		name   string
		queue  int
		flows  []sctp.Config
		fair   float64 // Jain's index, at least
		starve float64 // part of an equal share that each has, at least
	}{
		{"two", 512 << 10, []sctp.Config{bbr, bbr}, 0.9, 0.5},
		{"three", 512 << 10, []sctp.Config{bbr, bbr, bbr}, 0.8, 0.3},
		{"beside one of CUBIC, short queue", 128 << 10, []sctp.Config{bbr, cubic}, 0, 0.1},
		{"beside one of CUBIC", 512 << 10, []sctp.Config{bbr, cubic}, 0, 0.25},
		{"beside two of CUBIC", 512 << 10, []sctp.Config{bbr, cubic, cubic}, 0, 0.25},
		{"beside two of CUBIC, long queue", 2 << 20, []sctp.Config{bbr, cubic, cubic}, 0, 0.1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(1) {
				synctest.Test(t, func(t *testing.T) {
					link := sctptest.Link{Delay: rtt / 2, Rate: rate, Queue: tt.queue}
					mbit := shareLine(t, seed, link, 0, 0, 5*time.Second, 10*time.Second, tt.flows...)
					j, sum := bench.Jain(mbit...), 0.0
					for _, m := range mbit {
						sum += m
					}
					t.Logf("seed %d: %.0f Mb/s, Jain's index %.3f", seed, mbit, j)
					if sum < 0.85*rate/1e6 {
						t.Errorf("seed %d: %.0f Mb/s together of %d", seed, sum, int(rate/1e6))
					}
					if j < tt.fair {
						t.Errorf("seed %d: Jain's index %.3f, want %.2f", seed, j, tt.fair)
					}
					for i, m := range mbit {
						if least := tt.starve * sum / float64(len(mbit)); m < least {
							t.Errorf("seed %d: flow %d has %.1f Mb/s, want %s", seed, i, m, fmt.Sprintf("%.1f", least))
						}
					}
				})
			}
		})
	}
}
