package gateway

import (
	"context"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// In steady state a message between sites allocates nothing, neither at the processes nor at the gateways. It runs over
// loopback: networks in memory allocate.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, mode := range modes {
		w := newLoopback(t, mode)
		w.start(1, 2)
		w.connect()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		a, b := w.ranks[0].comm, w.ranks[1].comm
		for _, size := range []int{8, 3000, 30_000, 300_000} { // the last by rendezvous
			msg, buf := make([]byte, size), make([]byte, size)
			done := make(chan error)
			next := make(chan bool)
			go func() {
				for range next {
					_, err := b.Recv(ctx, p2p.SlotUser, buf, 0, 1)
					if err == nil {
						err = b.Send(ctx, p2p.SlotUser, p2p.SendStandard, buf[:1], 0, 2)
					}
					done <- err
				}
			}()
			round := func() {
				next <- true
				wantNil(t, a.Send(ctx, p2p.SlotUser, p2p.SendStandard, msg, 1, 1))
				_, err := a.Recv(ctx, p2p.SlotUser, buf[:1:1], 1, 2)
				wantNil(t, err)
				wantNil(t, <-done)
			}
			for range 300 {
				round()
			}
			n := testing.AllocsPerRun(200, round)
			close(next)
			if n >= 1 {
				t.Errorf("%s, %d bytes: %v allocations for a message and its answer, want 0", mode, size, n)
			}
		}
		cancel()
		w.close()
	}
}
