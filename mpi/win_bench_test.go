package mpi

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkWin puts to, or gets from, one target and flushes after every 16
// operations; an operation is one Put or Get.
func BenchmarkWin(b *testing.B) {
	for _, tr := range winTransports {
		for _, op := range []string{"put", "get", "accumulate"} {
			for _, n := range []int{8, 4 << 10, 64 << 10, 1 << 20} {
				b.Run(fmt.Sprintf("transport=%s/op=%s/bytes=%d", tr, op, n), func(b *testing.B) {
					b.SetBytes(int64(n))
					b.ReportAllocs()
					err := RunLocal(b.Context(), 2, func(ctx context.Context, w *World) error {
						return benchWin(ctx, b, w.Comm(), op, n)
					}, overTransport(tr))
					if err != nil {
						b.Error(err)
					}
				})
			}
		}
	}
}

func benchWin(ctx context.Context, b *testing.B, c *Comm, op string, n int) error {
	w, err := WinAllocate[byte](ctx, c, n)
	if err != nil {
		return err
	}
	buf := make([]byte, n)
	do := func(rounds int) error {
		for i := range rounds {
			var err error
			switch op {
			case "put":
				err = w.Put(ctx, buf, 1, 0)
			case "get":
				err = w.Get(ctx, buf, 1, 0)
			default:
				err = w.Accumulate(ctx, buf, 1, 0, Bxor)
			}
			if err == nil && (i%16 == 15 || i == rounds-1) {
				err = w.Flush(ctx, 1)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if c.Rank() == 0 {
		if err := do(32); err != nil {
			return err
		}
		b.ResetTimer()
		if err := do(b.N); err != nil {
			return err
		}
		b.StopTimer()
	}
	return w.Free(ctx)
}
