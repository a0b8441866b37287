package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// TestWinRDMADoesNotAllocate puts and gets through registered buffers.
func TestWinRDMADoesNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	const n = 16 << 10
	local(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[byte](ctx, c, n)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			src, dst := make([]byte, n), make([]byte, n)
			round := func() error {
				return errors.Join(w.Put(ctx, src, 1, 0), w.Get(ctx, dst, 1, 0), w.Flush(ctx, 1))
			}
			for range 50 {
				if err := round(); err != nil {
					return err
				}
			}
			var failed error
			allocs := testing.AllocsPerRun(200, func() {
				if err := round(); err != nil {
					failed = err
				}
			})
			// Both ranks, their transport and their timers are in this
			// process; registering anew took 5 in a round.
			if failed != nil || allocs > 2 {
				return fmt.Errorf("%.1f allocations in a round of two operations, %w", allocs, failed)
			}
		}
		return w.Free(ctx)
	}, WithTransport(TransportHybrid))
}

// TestWinManyBuffers uses more buffers than registrations are kept.
func TestWinManyBuffers(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		const n = 4 << 10
		w, err := WinAllocate[byte](ctx, c, n)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			for i := range rdmadev.MaxKept + 40 {
				buf := make([]byte, n)
				buf[7] = byte(i)
				if err := w.Put(ctx, buf, 1, 0); err != nil {
					return err
				}
				back := make([]byte, n)
				if err := errors.Join(w.Flush(ctx, 1), w.Get(ctx, back, 1, 0), w.Flush(ctx, 1)); err != nil {
					return err
				}
				if back[7] != byte(i) {
					return fmt.Errorf("round %d: read %d", i, back[7])
				}
			}
			if kept, bytes := w.w.rma.Device().Registrations.Kept(); kept != rdmadev.MaxKept || bytes != rdmadev.MaxKept*n {
				return fmt.Errorf("%d registrations of %d bytes are kept", kept, bytes)
			}
		}
		return w.Free(ctx)
	}, WithTransport(TransportHybrid))
}
