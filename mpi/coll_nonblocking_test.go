package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestNonblockingCollectives keeps one of each kind in flight at the same
// time, waits for them in another order on each rank, and looks at the
// results.
func TestNonblockingCollectives(t *testing.T) {
	seed := testSeed(t)
	for _, p := range []int{1, 2, 3, 4, 7, 8} {
		t.Run(fmt.Sprintf("ranks=%d", p), func(t *testing.T) {
			local(t, p, func(ctx context.Context, c *Comm) error {
				rng := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
				return nonblockingRound(ctx, c, rng, 600)
			})
		})
	}
}

func nonblockingRound(ctx context.Context, c *Comm, rng *rand.Rand, n int) error {
	p, rank := c.Size(), c.Rank()
	fill := func(n, f int) []int {
		v := make([]int, n)
		for i := range v {
			v[i] = i*f + rank
		}
		return v
	}
	counts := make([]int, p)
	for i := range counts {
		counts[i] = n
	}
	type job struct {
		name      string
		recv      []int
		want      func(i int) int
		req       *Request
		only, len int // rank that has a result, or -1; its length
	}
	var jobs []*job
	start := func(name string, recv []int, only int, req *Request, err error, want func(i int) int) error {
		lag(rng)
		jobs = append(jobs, &job{name, recv, want, req, only, len(recv)})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	sumRanks := p * (p - 1) / 2
	var errs []error
	add := func(name string, only, m int, f func(recv []int) (*Request, error), want func(i int) int) {
		recv := make([]int, m)
		req, err := f(recv)
		errs = append(errs, start(name, recv, only, req, err, want))
	}
	add("bcast", -1, n, func(recv []int) (*Request, error) {
		copy(recv, fill(n, 2))
		return Ibcast(c, recv, p-1)
	}, func(i int) int { return 2*i + p - 1 })
	add("barrier", -1, 0, func([]int) (*Request, error) { return Ibarrier(c) }, nil)
	add("allreduce", -1, n, func(recv []int) (*Request, error) { return Iallreduce(c, fill(n, 3), recv, Sum) },
		func(i int) int { return 3*i*p + sumRanks })
	add("reduce", p/2, n, func(recv []int) (*Request, error) { return Ireduce(c, fill(n, 4), recv, Sum, p/2) },
		func(i int) int { return 4*i*p + sumRanks })
	add("scan", -1, n, func(recv []int) (*Request, error) { return Iscan(c, fill(n, 5), recv, Sum) },
		func(i int) int { return 5*i*(rank+1) + rank*(rank+1)/2 })
	add("exscan", -1, n, func(recv []int) (*Request, error) { return Iexscan(c, fill(n, 5), recv, Sum) },
		func(i int) int { return 5*i*rank + rank*(rank-1)/2 })
	add("gather", 0, n*p, func(recv []int) (*Request, error) { return Igather(c, fill(n, 6), recv, 0) },
		func(i int) int { return i%n*6 + i/n })
	add("gatherv", 0, n*p, func(recv []int) (*Request, error) { return Igatherv(c, fill(n, 6), recv, counts, nil, 0) },
		func(i int) int { return i%n*6 + i/n })
	add("scatter", -1, n, func(recv []int) (*Request, error) { return Iscatter(c, fill(n*p, 7), recv, 0) },
		func(i int) int { return (rank*n + i) * 7 })
	add("scatterv", -1, n, func(recv []int) (*Request, error) { return Iscatterv(c, fill(n*p, 7), recv, counts, nil, 0) },
		func(i int) int { return (rank*n + i) * 7 })
	add("allgather", -1, n*p, func(recv []int) (*Request, error) { return Iallgather(c, fill(n, 8), recv) },
		func(i int) int { return i%n*8 + i/n })
	add("allgatherv", -1, n*p, func(recv []int) (*Request, error) { return Iallgatherv(c, fill(n, 8), recv, counts, nil) },
		func(i int) int { return i%n*8 + i/n })
	add("alltoall", -1, n*p, func(recv []int) (*Request, error) { return Ialltoall(c, fill(n*p, 9), recv) },
		func(i int) int { return (rank*n+i%n)*9 + i/n })
	add("alltoallv", -1, n*p, func(recv []int) (*Request, error) {
		return Ialltoallv(c, fill(n*p, 9), counts, nil, recv, counts, nil)
	}, func(i int) int { return (rank*n+i%n)*9 + i/n })
	add("reduce-scatter", -1, n, func(recv []int) (*Request, error) {
		return IreduceScatter(c, fill(n*p, 1), recv, counts, Sum)
	}, func(i int) int { return (rank*n+i)*p + sumRanks })
	add("reduce-scatter-block", -1, n, func(recv []int) (*Request, error) {
		return IreduceScatterBlock(c, fill(n*p, 1), recv, Sum)
	}, func(i int) int { return (rank*n+i)*p + sumRanks })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	rng.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	for _, j := range jobs {
		if _, err := j.req.Wait(ctx); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		if j.only >= 0 && j.only != rank || j.name == "exscan" && rank == 0 {
			continue
		}
		for i := range j.len {
			if got, want := j.recv[i], j.want(i); got != want {
				return fmt.Errorf("%s: element %d = %d, want %d", j.name, i, got, want)
			}
		}
	}
	return nil
}

// TestBlockingAmongNonblocking lets each rank in turn start a nonblocking collective before a blocking one that the
// others call first: they do not get each other's messages.
func TestBlockingAmongNonblocking(t *testing.T) {
	const p = 3
	local(t, p, func(ctx context.Context, c *Comm) error {
		for root := range p {
			bits := []int{0}
			var r *Request
			err := error(nil)
			if c.Rank() == root {
				r, err = Iallreduce(c, []int{1 << c.Rank()}, bits, Bor)
			}
			if err = errors.Join(err, Barrier(ctx, c)); err != nil {
				return err
			}
			if c.Rank() != root {
				if r, err = Iallreduce(c, []int{1 << c.Rank()}, bits, Bor); err != nil {
					return err
				}
			}
			if _, err := r.Wait(ctx); err != nil || bits[0] != 1<<p-1 {
				return fmt.Errorf("bits %b: %w", bits[0], err)
			}
		}
		return nil
	})
}
