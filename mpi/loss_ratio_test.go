package mpi

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// TestPingPongUnderLoss holds the time of a ping-pong over a network of 1 Gb/s
// and 25 µs that loses packets against its time where none is lost, in virtual
// time: what the protocol costs, on processors that cost nothing.
func TestPingPongUnderLoss(t *testing.T) {
	if testenv.Race {
		t.Skip("too slow with the race detector, which finds nothing here that it does not elsewhere")
	}
	const seeds = 5
	for _, tt := range []struct{ size, trips int }{{30_000, 200}, {300_000, 40}} {
		base := pingPongTime(t, 1, 0, tt.size, tt.trips)
		for _, limit := range []struct{ loss, ratio float64 }{{0.01, 1.5}, {0.02, 2.2}} {
			t.Run(fmt.Sprintf("size=%d/loss=%v", tt.size, limit.loss), func(t *testing.T) {
				var ratios []float64
				for seed := range uint64(seeds) {
					d := pingPongTime(t, seed, limit.loss, tt.size, tt.trips)
					ratios = append(ratios, float64(d)/float64(base))
				}
				slices.Sort(ratios)
				t.Logf("%v a trip without loss; with it %.2f times as much (seeds 0 to %d: %.2f)",
					base/time.Duration(tt.trips), ratios[seeds/2], seeds-1, ratios)
				if ratios[seeds/2] > limit.ratio {
					t.Errorf("the median is %.2f times the time without loss, want at most %v", ratios[seeds/2], limit.ratio)
				}
			})
		}
	}
}

// pingPongTime returns how long trips of a message between two ranks take.
func pingPongTime(t *testing.T, seed uint64, loss float64, size, trips int) (d time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(seed)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Loss: loss})
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
			c, b := w.Comm(), make([]byte, size)
			if err := c.barrier(ctx); err != nil {
				return err
			}
			start := time.Now()
			for i := range 2 * trips {
				var err error
				if i%2 == c.Rank() {
					err = Send(ctx, c, b, 1-c.Rank(), 0)
				} else {
					_, err = Recv(ctx, c, b, 1-c.Rank(), 0)
				}
				if err != nil {
					return err
				}
			}
			if c.Rank() == 0 {
				d = time.Since(start)
			}
			return nil
		}, WithTransport(TransportSCTP), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
			host := fmt.Sprintf("10.0.0.%d", rank+1)
			pc, err := net.NewHost(host).ListenPacket(host + ":9899")
			return []sctp.PacketConn{pc}, err
		}))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	})
	return d
}
