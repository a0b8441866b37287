package mpi

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkVector bounces items with gaps, blocks of bytes at twice their length, between two ranks; an
// operation is a round trip. Blocks of 0 bytes stand for data in one run.
func BenchmarkVector(b *testing.B) {
	for _, tr := range []string{TransportTCP, TransportSCTP, hybridShared} {
		for _, size := range []int{32 << 10, 1 << 20} {
			for _, block := range []int{0, 8, 4096, 32768} {
				b.Run(fmt.Sprintf("transport=%s/size=%d/block=%d", tr, size, block), func(b *testing.B) {
					b.SetBytes(int64(2 * size))
					b.ReportAllocs()
					benchRanks(b, tr, func(ctx context.Context, c *Comm, n int) error {
						mem := make([]byte, 2*size)
						x := Elements(mem[:size])
						if block > 0 {
							x = Items(mem, 1, MustType(TypeVector(size/block, block, 2*block, MustType(TypeOf[byte]()))))
						}
						for range n {
							if c.Rank() == 0 {
								if err := c.Send(ctx, x, 1, 0); err != nil {
									return err
								}
							}
							if _, err := c.Recv(ctx, x, 1-c.Rank(), 0); err != nil {
								return err
							}
							if c.Rank() == 1 {
								if err := c.Send(ctx, x, 0, 0); err != nil {
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
}
