package mpi

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// calls returns the collectives that the allocation test and the benchmarks
// run, on n bytes.
func collCalls(c *Comm, n int) map[Coll]func(ctx context.Context) error {
	p := c.Size()
	send, recv := make([]byte, n), make([]byte, n)
	allSend, allRecv := make([]byte, n*p), make([]byte, n*p)
	counts := make([]int, p)
	for i := range counts {
		counts[i] = n
	}
	return map[Coll]func(ctx context.Context) error{
		CollBarrier:       func(ctx context.Context) error { return Barrier(ctx, c) },
		CollBcast:         func(ctx context.Context) error { return Bcast(ctx, c, send, 0) },
		CollReduce:        func(ctx context.Context) error { return Reduce(ctx, c, send, recv, Bxor, 0) },
		CollAllreduce:     func(ctx context.Context) error { return Allreduce(ctx, c, send, recv, Bxor) },
		CollGather:        func(ctx context.Context) error { return Gather(ctx, c, send, allRecv, 0) },
		CollGatherv:       func(ctx context.Context) error { return Gatherv(ctx, c, send, allRecv, counts, nil, 0) },
		CollScatter:       func(ctx context.Context) error { return Scatter(ctx, c, allSend, recv, 0) },
		CollScatterv:      func(ctx context.Context) error { return Scatterv(ctx, c, allSend, recv, counts, nil, 0) },
		CollAllgather:     func(ctx context.Context) error { return Allgather(ctx, c, send, allRecv) },
		CollAllgatherv:    func(ctx context.Context) error { return Allgatherv(ctx, c, send, allRecv, counts, nil) },
		CollAlltoall:      func(ctx context.Context) error { return Alltoall(ctx, c, allSend, allRecv) },
		CollAlltoallv:     func(ctx context.Context) error { return Alltoallv(ctx, c, allSend, counts, nil, allRecv, counts, nil) },
		CollScan:          func(ctx context.Context) error { return Scan(ctx, c, send, recv, Bxor) },
		CollExscan:        func(ctx context.Context) error { return Exscan(ctx, c, send, recv, Bxor) },
		CollReduceScatter: func(ctx context.Context) error { return ReduceScatter(ctx, c, allSend, recv, counts, Bxor) },
		CollReduceScatterBlock: func(ctx context.Context) error {
			return ReduceScatterBlock(ctx, c, allSend, recv, Bxor)
		},
	}
}

// TestCollectiveAllocs repeats every algorithm and counts what is allocated
// once pools are filled: less than one object per ten calls of a rank.
func TestCollectiveAllocs(t *testing.T) {
	if testenv.Race {
		t.Skip("sync.Pool is not found to keep objects under the race detector")
	}
	const p, warm, rounds = 4, 50, 300
	local(t, p, func(ctx context.Context, c *Comm) error {
		for coll := range collCount {
			for _, alg := range Algorithms(coll) {
				(&collBench{c: c}).use(coll, alg)
				f := collCalls(c, 200)[coll]
				var before, after runtime.MemStats
				for i := range warm + rounds {
					if i == warm {
						if err := Barrier(ctx, c); err != nil {
							return err
						}
						runtime.ReadMemStats(&before)
					}
					if err := f(ctx); err != nil {
						return err
					}
					// No rank runs ahead: messages that wait need memory.
					if err := Barrier(ctx, c); err != nil {
						return err
					}
				}
				runtime.ReadMemStats(&after)
				if err := Barrier(ctx, c); err != nil {
					return err
				}
				if n := after.Mallocs - before.Mallocs; c.Rank() == 0 && n > p*rounds/10 {
					t.Errorf("%v by %s: %d objects in %d calls", coll, alg, n, p*rounds)
				}
			}
		}
		return nil
	})
}

func BenchmarkCollective(b *testing.B) {
	for _, tr := range []string{TransportInproc, TransportHybrid, TransportTCP} {
		for coll := range collCount {
			for _, alg := range Algorithms(coll) {
				for _, p := range []int{2, 4, 8} {
					for _, n := range []int{8, 4 << 10, 64 << 10, 1 << 20} {
						if coll == CollBarrier && n > 8 {
							continue
						}
						name := fmt.Sprintf("transport=%s/coll=%v/alg=%s/ranks=%d/bytes=%d", tr, coll, alg, p, n)
						b.Run(name, func(b *testing.B) {
							benchCollective(b, tr, coll, alg, p, n)
						})
					}
				}
			}
		}
	}
}

func benchCollective(b *testing.B, tr string, coll Coll, alg string, p, n int) {
	b.ReportAllocs()
	err := RunLocal(b.Context(), p, func(ctx context.Context, w *World) error {
		c := w.Comm()
		(&collBench{c: c}).use(coll, alg)
		f := collCalls(c, n)[coll]
		for range 3 {
			if err := f(ctx); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 0 {
			b.ResetTimer()
		}
		for range b.N { // all ranks together, so not b.Loop
			if err := f(ctx); err != nil {
				return err
			}
		}
		return Barrier(ctx, c)
	}, overTransport(tr))
	if err != nil {
		b.Error(err)
	}
}
