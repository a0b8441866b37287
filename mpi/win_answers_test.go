package mpi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/mpi/internal/rma"
)

// TestWinGetsWait has two ranks ask each other for more than a target holds in answers, with long and short Gets: the
// services of both wait for the other one to receive, and all Gets complete. The data that one rank has asked for is
// received while its program is still asking.
func TestWinGetsWait(t *testing.T) {
	const long, short, n = 20, 3000, rma.MaxChunk
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[byte](ctx, c, long*n+short)
		if err != nil {
			return err
		}
		fill := func(b []byte, rank int) {
			rng := rand.NewChaCha8([32]byte{byte(rank)})
			_, _ = rng.Read(b)
		}
		fill(w.Buf(), c.Rank())
		peer := 1 - c.Rank()
		if err := w.Fence(ctx); err != nil {
			return err
		}
		got, want := make([]byte, long*n+short), make([]byte, long*n+short)
		for i := range long {
			if err := w.Get(ctx, got[i*n:][:n], peer, i*n); err != nil {
				return err
			}
		}
		for i := long * n; i < len(got); i++ {
			if err := w.Get(ctx, got[i:][:1], peer, i); err != nil {
				return err
			}
		}
		if err := w.Flush(ctx, peer); err != nil {
			return err
		}
		if fill(want, peer); !bytes.Equal(got, want) {
			return fmt.Errorf("wrong data from rank %d", peer)
		}
		return w.Free(ctx)
	})
}
