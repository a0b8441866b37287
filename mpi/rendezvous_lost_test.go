package mpi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/job"
)

// TestRendezvousAssociationsLost ends the associations of queue pairs at any moment, by
// either side, while bodies are written and read both ways: they all arrive, and the
// sends end.
func TestRendezvousAssociationsLost(t *testing.T) {
	const rounds, each, n = 60, 4, 20_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	eachMethod(t, func(ctx context.Context, w *World, _ string) error {
		c := w.Comm()
		b := w.eng.Bulk.(*job.RDMABulk)
		over := make(chan struct{})
		var wg sync.WaitGroup
		defer wg.Wait()
		defer close(over)
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(rng.IntN(2000)) * time.Microsecond):
				}
				if b.Open() != nil {
					for _, a := range device(w).Verbs().Associations() {
						a.Abort("lost")
					}
				}
			}
		})
		for round := range rounds {
			var reqs []*Request
			var bufs [][]byte
			for i := range each {
				out, in := make([]byte, n), make([]byte, n)
				pattern(out, each*round+i)
				r, err := Irecv(c, in, 1-c.Rank(), i)
				if err != nil {
					return err
				}
				s, err := Isend(c, out, 1-c.Rank(), i)
				if err != nil {
					return err
				}
				reqs, bufs = append(reqs, r, s), append(bufs, in)
			}
			if _, err := Waitall(ctx, reqs...); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			for i, b := range bufs {
				if err := checkPattern(b, each*round+i); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
		}
		return nil
	})
}
