package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestSitesAgreeWithPlain performs random collectives on random communicators of ranks at random sites, and the
// same without the algorithms for sites: blocking, nonblocking and persistent, in place, with operators that are
// commutative and that are not. All ranks draw the same numbers.
func TestSitesAgreeWithPlain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, round))
		letters := make([]byte, 2+r.IntN(9))
		for i := range letters {
			letters[i] = "ABC"[r.IntN(3)]
		}
		slices.SortFunc(letters, func(a, b byte) int { return int(a)*(r.IntN(2)) - int(b) }) // some runs, some not
		err := RunLocal(t.Context(), len(letters), func(ctx context.Context, w *World) error {
			r := rand.New(rand.NewPCG(seed, round+1<<32))
			for range 8 {
				keys := r.Perm(w.Size())
				colors := make([]int, w.Size())
				for i := range colors {
					colors[i] = min(r.IntN(4), 1) // most in one communicator
				}
				c, err := w.Comm().Split(ctx, colors[w.Rank()], keys[w.Rank()])
				if err != nil {
					return err
				}
				plain, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				plain.SetTuning(plainTuning())
				p := &sitesProperty{c: c, plain: plain, r: rand.New(rand.NewPCG(seed, r.Uint64()+uint64(colors[w.Rank()])))}
				for range 16 {
					if err := p.step(ctx); err != nil {
						return fmt.Errorf("sites %s, %d ranks: %w", letters, c.Size(), err)
					}
				}
				c.Free()
				plain.Free()
			}
			return nil
		}, atSites(string(letters)))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

type sitesProperty struct {
	c, plain *Comm
	r        *rand.Rand // the same on all ranks of c
}

// compose composes the functions x -> a*x + b, which is associative but not commutative.
var compose = NewOp(func(a, b [2]int32) [2]int32 { return [2]int32{a[0] * b[0], a[1]*b[0] + b[1]} }, false)

// step performs one collective.
func (p *sitesProperty) step(ctx context.Context) error {
	elems := []int{0, 1, 3 + p.r.IntN(50), 2000 + p.r.IntN(40000)}[p.r.IntN(4)]
	if p.r.IntN(2) == 0 {
		return stepOn(ctx, p, elems, func(rank, i int) float64 { return float64(rank*3+i%17) - 5 }, Sum[float64])
	}
	return stepOn(ctx, p, elems, func(rank, i int) [2]int32 { return [2]int32{int32(rank*2 + i%5 + 1), int32(rank + i%7)} }, compose)
}

func stepOn[T comparable](ctx context.Context, p *sitesProperty, n int, value func(rank, i int) T, op Op[T]) error {
	size, me, root := p.c.Size(), p.c.Rank(), p.r.IntN(p.c.Size())
	counts := make([]int, size)
	total := 0
	for i := range counts {
		counts[i] = p.r.IntN(n + 1)
		total += counts[i]
	}
	x := &sitesCall[T]{kind: Coll(p.r.IntN(int(collCount))), root: root, counts: counts, op: op}
	form, inPlace := p.r.IntN(3), p.r.IntN(3) == 0
	for _, c := range []*Comm{p.c, p.plain} {
		x.buffers(me, size, n, total, inPlace, value)
		x.c = c
		var r *Request
		var err error
		switch form {
		case 0:
			err = x.call(ctx)
		case 1:
			if r, err = x.start(c); err == nil {
				_, err = r.Wait(ctx)
			}
		case 2:
			var all *Persistent
			if all, err = prepare(c, x.start); err == nil {
				if r, err = all.Start(); err == nil {
					_, err = r.Wait(ctx)
				}
				all.Free()
			}
		}
		if err != nil {
			return fmt.Errorf("%v of %d elements: %w", x.kind, n, err)
		}
		x.results = append(x.results, slices.Clone(x.recv))
	}
	if !slices.Equal(x.results[0], x.results[1]) {
		return fmt.Errorf("%v of %d elements, counts %v, root %d, form %d, in place %v: rank %d has another result than without sites",
			x.kind, n, counts, root, form, inPlace, me)
	}
	return nil
}

// sitesCall is a collective with its arguments on one rank.
type sitesCall[T comparable] struct {
	kind       Coll
	c          *Comm
	root       int
	counts     []int
	op         Op[T]
	send, recv []T
	results    [][]T
	all        []int // in Alltoallv, what comes from each rank
}

// buffers makes the buffers: equal blocks have n elements, those of different lengths total.
func (x *sitesCall[T]) buffers(me, size, n, total int, inPlace bool, value func(rank, i int) T) {
	sends, recvs := n, n
	at := 0 // of the own block
	for _, k := range x.counts[:me] {
		at += k
	}
	mine := x.counts[me]
	switch x.kind {
	case CollGather, CollAllgather:
		recvs, at, mine = n*size, n*me, n
	case CollScatter, CollReduceScatterBlock:
		sends, at, mine = n*size, n*me, n
	case CollAlltoall:
		sends, recvs = n*size, n*size
	case CollGatherv, CollAllgatherv:
		sends, recvs = mine, total
	case CollScatterv, CollReduceScatter:
		sends, recvs = total, mine
	case CollAlltoallv:
		sends, recvs = total, mine*size
	}
	x.all = slices.Repeat([]int{x.counts[me]}, size)
	x.send, x.recv = make([]T, sends), make([]T, recvs)
	for i := range x.send {
		x.send[i] = value(me, i)
	}
	for i := range x.recv {
		x.recv[i] = value(me, 3*i+1)
	}
	if !inPlace {
		return
	}
	switch x.kind {
	case CollReduce, CollAllreduce, CollScan, CollExscan, CollAlltoall:
		x.send = x.recv
	case CollAllgather, CollAllgatherv:
		x.send = x.recv[at : at+mine]
	case CollReduceScatter, CollReduceScatterBlock:
		x.recv = x.send[:mine]
	case CollGather, CollGatherv:
		if me == x.root {
			x.send = x.recv[at : at+mine]
		}
	case CollScatter, CollScatterv:
		if me == x.root {
			x.recv = x.send[at : at+mine]
		}
	}
}

func (x *sitesCall[T]) call(ctx context.Context) error {
	switch c := x.c; x.kind {
	case CollBarrier:
		return Barrier(ctx, c)
	case CollBcast:
		return Bcast(ctx, c, x.recv, x.root)
	case CollReduce:
		return Reduce(ctx, c, x.send, x.recv, x.op, x.root)
	case CollAllreduce:
		return Allreduce(ctx, c, x.send, x.recv, x.op)
	case CollGather:
		return Gather(ctx, c, x.send, x.recv, x.root)
	case CollGatherv:
		return Gatherv(ctx, c, x.send, x.recv, x.counts, nil, x.root)
	case CollScatter:
		return Scatter(ctx, c, x.send, x.recv, x.root)
	case CollScatterv:
		return Scatterv(ctx, c, x.send, x.recv, x.counts, nil, x.root)
	case CollAllgather:
		return Allgather(ctx, c, x.send, x.recv)
	case CollAllgatherv:
		return Allgatherv(ctx, c, x.send, x.recv, x.counts, nil)
	case CollAlltoall:
		return Alltoall(ctx, c, x.send, x.recv)
	case CollAlltoallv:
		return Alltoallv(ctx, c, x.send, x.counts, nil, x.recv, x.all, nil)
	case CollReduceScatter:
		return ReduceScatter(ctx, c, x.send, x.recv, x.counts, x.op)
	case CollReduceScatterBlock:
		return ReduceScatterBlock(ctx, c, x.send, x.recv, x.op)
	case CollScan:
		return Scan(ctx, c, x.send, x.recv, x.op)
	case CollExscan:
		return Exscan(ctx, c, x.send, x.recv, x.op)
	}
	return fmt.Errorf("no such collective: %v", x.kind)
}

func (x *sitesCall[T]) start(c *Comm) (*Request, error) {
	switch x.kind {
	case CollBarrier:
		return Ibarrier(c)
	case CollBcast:
		return Ibcast(c, x.recv, x.root)
	case CollReduce:
		return Ireduce(c, x.send, x.recv, x.op, x.root)
	case CollAllreduce:
		return Iallreduce(c, x.send, x.recv, x.op)
	case CollGather:
		return Igather(c, x.send, x.recv, x.root)
	case CollGatherv:
		return Igatherv(c, x.send, x.recv, x.counts, nil, x.root)
	case CollScatter:
		return Iscatter(c, x.send, x.recv, x.root)
	case CollScatterv:
		return Iscatterv(c, x.send, x.recv, x.counts, nil, x.root)
	case CollAllgather:
		return Iallgather(c, x.send, x.recv)
	case CollAllgatherv:
		return Iallgatherv(c, x.send, x.recv, x.counts, nil)
	case CollAlltoall:
		return Ialltoall(c, x.send, x.recv)
	case CollAlltoallv:
		return Ialltoallv(c, x.send, x.counts, nil, x.recv, x.all, nil)
	case CollReduceScatter:
		return IreduceScatter(c, x.send, x.recv, x.counts, x.op)
	case CollReduceScatterBlock:
		return IreduceScatterBlock(c, x.send, x.recv, x.op)
	case CollScan:
		return Iscan(c, x.send, x.recv, x.op)
	case CollExscan:
		return Iexscan(c, x.send, x.recv, x.op)
	}
	return nil, fmt.Errorf("no such collective: %v", x.kind)
}

// TestSitesDoNotAllocate repeats collectives across sites: in the long run they allocate nothing.
func TestSitesDoNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	const warm, runs = 100, 100
	for _, n := range []int{16, 40000} {
		for kind := range collCount {
			err := RunLocal(t.Context(), 4, func(ctx context.Context, w *World) error {
				counts := slices.Repeat([]int{n}, 4)
				x := &sitesCall[float64]{kind: kind, c: w.Comm(), counts: counts, op: Sum[float64]}
				x.buffers(w.Rank(), 4, n, 4*n, false, func(rank, i int) float64 { return float64(rank + i) })
				if w.Rank() > 0 {
					for range warm + runs + 1 {
						if err := errors.Join(x.call(ctx), Barrier(ctx, x.c)); err != nil {
							return err
						}
					}
					return nil
				}
				var err error
				round := func() {
					if err == nil {
						err = x.call(ctx)
					}
					if err == nil {
						err = Barrier(ctx, x.c)
					}
				}
				for range warm {
					round()
				}
				if got := testing.AllocsPerRun(runs, round); got >= 1 {
					t.Errorf("%v of %d elements: %v allocations", kind, n, got)
				}
				return err
			}, atSites("ABBA"))
			if err != nil {
				t.Error(err)
			}
		}
	}
}
