package mpi

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkPingPong bounces one message between two ranks; an operation is a
// round trip.
func BenchmarkPingPong(b *testing.B) {
	for _, tr := range testTransports {
		for _, size := range []int{0, 64, 4096, 65536, 1 << 20} {
			b.Run(fmt.Sprintf("transport=%s/size=%d", tr, size), func(b *testing.B) {
				b.SetBytes(int64(2 * size))
				b.ReportAllocs()
				benchRanks(b, tr, func(ctx context.Context, c *Comm, n int) error {
					buf := make([]byte, size)
					for range n {
						if c.Rank() == 0 {
							if err := Send(ctx, c, buf, 1, 0); err != nil {
								return err
							}
						}
						if _, err := Recv(ctx, c, buf, 1-c.Rank(), 0); err != nil {
							return err
						}
						if c.Rank() == 1 {
							if err := Send(ctx, c, buf, 0, 0); err != nil {
								return err
							}
						}
					}
					return nil
				})
			})
		}
	}
}

// BenchmarkStream sends in one direction, a window of 64 messages at a time;
// an operation is one message.
func BenchmarkStream(b *testing.B) {
	const window = 64
	for _, tr := range testTransports {
		for _, size := range []int{8, 4096, 65536, 1 << 20} {
			b.Run(fmt.Sprintf("transport=%s/size=%d", tr, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				benchRanks(b, tr, func(ctx context.Context, c *Comm, n int) error {
					buf := make([]byte, size)
					var reqs [window]*Request
					for n > 0 {
						k := min(n, window)
						n -= k
						for i := range reqs[:k] {
							var err error
							if c.Rank() == 0 {
								reqs[i], err = Isend(c, buf, 1, i)
							} else {
								reqs[i], err = Irecv(c, buf, 0, i)
							}
							if err != nil {
								return err
							}
						}
						for _, r := range reqs[:k] {
							if _, err := r.Wait(ctx); err != nil {
								return err
							}
							r.Free()
						}
						if c.Rank() == 0 {
							if _, err := Recv(ctx, c, buf[:0], 1, 1000); err != nil {
								return err
							}
						} else if err := Send(ctx, c, buf[:0], 0, 1000); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}

// benchRanks runs f on two ranks, with b.N on both, and times it without setup.
func benchRanks(b *testing.B, transport string, f func(ctx context.Context, c *Comm, n int) error) {
	b.Helper()
	err := RunLocal(context.Background(), 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if err := f(ctx, c, 10); err != nil {
			return err
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			b.ResetTimer()
		}
		if err := f(ctx, c, b.N); err != nil {
			return err
		}
		if c.Rank() == 0 {
			b.StopTimer()
		}
		return nil
	}, overTransport(transport))
	if err != nil {
		b.Fatal(err)
	}
}
