package mpi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// TestWinLossyNetwork puts and gets over networks that lose, duplicate, reorder
// and corrupt packets, in virtual time. After each Fence everything must be in
// place: a Fence that returned before its writes were placed would show here,
// where they take several round trips.
func TestWinLossyNetwork(t *testing.T) {
	for _, tt := range []struct {
		name string
		link sctptest.Link
	}{
		{"clean", sctptest.Link{Delay: time.Millisecond}},
		{"loss=5%", sctptest.Link{Delay: time.Millisecond, Loss: 0.05}},
		{"reorder=30%", sctptest.Link{Delay: time.Millisecond, Reorder: 0.3, ReorderDelay: 3 * time.Millisecond}},
		{"mixed", sctptest.Link{Delay: 2 * time.Millisecond, Loss: 0.01, Duplicate: 0.02, Reorder: 0.05, Corrupt: 0.01}},
	} {
		for _, tr := range []string{TransportSCTP, TransportHybrid} {
			t.Run(tt.name+"/"+tr, func(t *testing.T) {
				seed := testSeed(t)
				synctest.Test(t, func(t *testing.T) {
					net := sctptest.NewNetwork(seed)
					defer net.Close()
					net.SetDefault(tt.link)
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					err := RunLocal(ctx, 3, func(ctx context.Context, w *World) error {
						return lossyWindow(ctx, w.Comm(), seed)
					}, WithTransport(tr), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
						addr := fmt.Sprintf("10.0.0.%d", rank+1)
						pc, err := net.NewHost(addr).ListenPacket(addr + ":9899")
						return []sctp.PacketConn{pc}, err
					}))
					if err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// lossyWindow lets every rank put its number to random places of its stripe of
// all windows, in several epochs, and checks the stripes after each.
func lossyWindow(ctx context.Context, c *Comm, seed uint64) error {
	const stripe, epochs, puts = 40_000, 4, 12
	p := c.Size()
	w, err := WinAllocate[uint32](ctx, c, p*stripe)
	if err != nil {
		return err
	}
	// Each rank replays what the others do to its own memory.
	draws := make([]*rand.Rand, p)
	for r := range draws {
		draws[r] = rand.New(rand.NewPCG(seed, uint64(r)))
	}
	want := make([]uint32, p*stripe)
	for epoch := range epochs {
		for origin, rng := range draws {
			for i := range puts {
				target, n := rng.IntN(p), 1<<rng.IntN(15)
				// Within an epoch puts of one origin must not overlap.
				at := origin*stripe + i*(stripe/puts)
				n = min(n, stripe/puts)
				v := uint32(origin*1000 + epoch*100 + i + 1)
				if target == c.Rank() {
					for k := range n {
						want[at+k] = v
					}
				}
				if origin != c.Rank() {
					continue
				}
				src := make([]uint32, n)
				for k := range src {
					src[k] = v
				}
				if err := w.Put(ctx, src, target, at); err != nil {
					return err
				}
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if err := diff("memory", w.Buf(), want); err != nil {
			return fmt.Errorf("epoch %d: %w", epoch, err)
		}
		if err := w.Accumulate(ctx, []uint32{1}, 0, 0, NoOp); err != nil {
			return err
		}
		got := make([]uint32, p*stripe)
		next := (c.Rank() + 1) % p
		if err := w.Get(ctx, got, next, 0); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		all := make([]uint32, p*p*stripe)
		if err := Allgather(ctx, c, want, all); err != nil {
			return err
		}
		if err := diff("got", got, all[next*p*stripe:(next+1)*p*stripe]); err != nil {
			return err
		}
	}
	return w.Free(ctx)
}
