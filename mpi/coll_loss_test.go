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

// TestCollectivesLossyNetwork runs every algorithm over a network that loses
// and reorders packets, in virtual time: ranks come up to a second apart.
func TestCollectivesLossyNetwork(t *testing.T) {
	seed := testSeed(t)
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(seed)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond, Jitter: time.Millisecond, Loss: 0.03, Reorder: 0.05})
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		err := RunLocal(ctx, 4, func(ctx context.Context, w *World) error {
			c := w.Comm()
			rng := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
			for _, n := range []int{2, 700} {
				if err := all(&collBench{ctx: ctx, c: c}, subject[mat]{"mat", func(x uint64) mat {
					return mat{uint32(x), uint32(x >> 8), uint32(x >> 16), uint32(x >> 24)}
				}, NewOp(mul, false), mul}, n); err != nil {
					return err
				}
				time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
			}
			return nonblockingRound(ctx, c, rng, 500)
		}, WithTransport(TransportSCTP), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
			addr := fmt.Sprintf("10.0.0.%d", rank+1)
			pc, err := net.NewHost(addr).ListenPacket(addr + ":9899")
			return []sctp.PacketConn{pc}, err
		}))
		if err != nil {
			t.Error(err)
		}
	})
}
