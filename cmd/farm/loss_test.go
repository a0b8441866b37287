package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// TestFarmUnderLoss holds the time of a farm of four ranks over a network of
// 1 Gb/s and 25 µs that loses packets against its time where none is lost, in
// virtual time: what the protocol costs, on processors that cost nothing.
func TestFarmUnderLoss(t *testing.T) {
	if testenv.Race {
		t.Skip("too slow with the race detector, which finds nothing here that it does not elsewhere")
	}
	// Which worker gets which task is up to the scheduler, so no two runs are alike.
	const seeds = 7
	for _, tt := range []struct {
		task   string
		tasks  int
		fanout int
	}{{"30KB", 300, 1}, {"30KB", 300, 10}, {"300KB", 50, 1}, {"300KB", 50, 10}} {
		var bases []time.Duration
		for range 3 {
			bases = append(bases, farmTime(t, 1, 0, tt.tasks, tt.task, tt.fanout))
		}
		slices.Sort(bases)
		base := bases[1]
		for _, limit := range []struct{ loss, ratio float64 }{{0.01, 1.2}, {0.02, 1.4}} {
			t.Run(fmt.Sprintf("task=%s/fanout=%d/loss=%v", tt.task, tt.fanout, limit.loss), func(t *testing.T) {
				var ratios []float64
				for seed := range uint64(seeds) {
					d := farmTime(t, seed, limit.loss, tt.tasks, tt.task, tt.fanout)
					ratios = append(ratios, float64(d)/float64(base))
				}
				slices.Sort(ratios)
				t.Logf("%v without loss; with it %.2f times as much (seeds 0 to %d: %.2f)", base, ratios[seeds/2], seeds-1, ratios)
				if ratios[seeds/2] > limit.ratio {
					t.Errorf("the median is %.2f times the time without loss, want at most %v", ratios[seeds/2], limit.ratio)
				}
			})
		}
	}
}

// farmTime returns how long a farm takes.
func farmTime(t *testing.T, seed uint64, loss float64, tasks int, task string, fanout int) (d time.Duration) {
	o := options{tasks: tasks, seed: 3, tags: 10, fanout: fanout, outstanding: 10}
	if err := o.task.Set(task); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(seed)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Loss: loss})
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		err := mpi.RunLocal(ctx, 4, func(ctx context.Context, w *mpi.World) error {
			if w.Comm().Rank() != 0 {
				return work(ctx, w.Comm(), &o)
			}
			start := time.Now()
			res, err := lead(ctx, w.Comm(), &o)
			d = time.Since(start)
			if err == nil && !res.verified {
				t.Errorf("seed %d: not verified", seed)
			}
			return err
		}, mpi.WithTransport(mpi.TransportSCTP), mpi.WithSpin(0), mpi.WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
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
