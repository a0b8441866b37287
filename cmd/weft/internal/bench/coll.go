package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/weftstack/weft/mpi"
)

// collective is a collective at one size: how to call and start it, and how to
// fill and check its buffers.
type collective struct {
	call  func(ctx context.Context) error
	start func() (*mpi.Request, error)
	init  func() (*mpi.Persistent, error)
	fill  func()
	check func() error
	free  func() // may be nil
}

// by gives a case its calls: blocking, nonblocking and persistent.
func (k *collective) by(
	call func(context.Context) error, start func() (*mpi.Request, error), init func() (*mpi.Persistent, error),
) *collective {
	k.call, k.start, k.init = call, start, init
	return k
}

// collectiveTests are the tests of collectives, blocking, not, and persistent. The root
// is rank 0, as with OSU.
func collectiveTests() []*test {
	var out []*test
	for _, k := range []struct {
		name, title string
		words       bool // works on float32
		single      bool
		make        func(b *state, size int) *collective
	}{
		{"alltoallw", "All-to-Allw Personalized Exchange", false, false, collAlltoallw},
		{"neighbor_allgather", "Neighborhood Allgather", false, false, collNeighborAllgather},
		{"neighbor_allgatherv", "Neighborhood Allgatherv", false, false, collNeighborAllgatherv},
		{"neighbor_alltoall", "Neighborhood All-to-All", false, false, collNeighborAlltoall},
		{"neighbor_alltoallv", "Neighborhood All-to-Allv", false, false, collNeighborAlltoallv},
		{"neighbor_alltoallw", "Neighborhood All-to-Allw", false, false, collNeighborAlltoallw},
		{"allgather", "Allgather", false, false, collAllgather},
		{"allgatherv", "Allgatherv", false, false, collAllgatherv},
		{"allreduce", "Allreduce", true, false, collAllreduce},
		{"alltoall", "All-to-All Personalized Exchange", false, false, collAlltoall},
		{"alltoallv", "All-to-Allv Personalized Exchange", false, false, collAlltoallv},
		{"barrier", "Barrier", false, true, collBarrier},
		{"bcast", "Broadcast", false, false, collBcast},
		{"exscan", "Exclusive Scan", true, false, collExscan},
		{"gather", "Gather", false, false, collGather},
		{"gatherv", "Gatherv", false, false, collGatherv},
		{"reduce", "Reduce", true, false, collReduce},
		{"reduce_scatter", "Reduce_scatter", true, false, collReduceScatter},
		{"reduce_scatter_block", "Reduce_scatter_block", true, false, collReduceScatterBlock},
		{"scan", "Scan", true, false, collScan},
		{"scatter", "Scatter", false, false, collScatter},
		{"scatterv", "Scatterv", false, false, collScatterv},
	} {
		t := test{name: k.name, title: "MPI " + k.title + " Latency Test", columns: []string{"Avg Latency(us)"},
			more: []string{"Min Latency(us)", "Max Latency(us)"}, min: 1, max: 1 << 20, single: k.single,
			iters: [2]int{1000, 100}, warmup: [2]int{200, 10}}
		if k.words {
			t.min = 4
		}
		if k.single {
			t.max = 0
		}
		type caseOf = func(*state, *collective) (*testCase, error)
		setup := func(run caseOf) func(context.Context, *state, int) (*testCase, error) {
			return func(_ context.Context, b *state, size int) (*testCase, error) {
				c := k.make(b, size)
				out, err := run(b, c)
				if err == nil && c.free != nil {
					done := out.done
					out.done = func(ctx context.Context) (err error) {
						if done != nil {
							err = done(ctx)
						}
						c.free()
						return err
					}
				}
				return out, err
			}
		}
		i, p := t, t
		t.setup = setup(blockingCase)
		i.name, i.title = "i"+k.name, "MPI Non-blocking "+k.title+" Latency Test"
		i.columns = []string{"Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"}
		i.more = []string{"Coll. Init(us)", "MPI_Wait(us)", "Min Comm.(us)", "Max Comm.(us)"}
		i.setup = setup(nonblockingCase)
		p.name, p.title = k.name+"_persistent", "MPI Persistent "+k.title+" Latency Test"
		p.setup = setup(persistentCase)
		out = append(out, &t, &i, &p)
	}
	return out
}

// blockingCase times each call, with a barrier between them that is not timed,
// and gives mean, minimum and maximum over the ranks.
func blockingCase(b *state, k *collective) (*testCase, error) {
	return &testCase{
		run: func(ctx context.Context, warmup, iters int) ([]float64, error) {
			took, err := b.timeEach(ctx, warmup, iters, k.call)
			if err != nil {
				return nil, err
			}
			mean, lo, hi, err := b.spread(ctx, micros(took, iters))
			return []float64{mean, lo, hi}, err
		},
		check: func(ctx context.Context) error {
			k.fill()
			if err := k.call(ctx); err != nil {
				return err
			}
			return k.check()
		},
	}, nil
}

// spread returns mean, minimum and maximum of v over the ranks.
func (b *state) spread(ctx context.Context, v float64) (mean, lo, hi float64, err error) {
	all := make([]float64, b.size)
	if err := mpi.Allgather(ctx, b.c, []float64{v}, all); err != nil {
		return 0, 0, 0, err
	}
	lo, hi = all[0], all[0]
	for _, x := range all {
		mean += x / float64(b.size)
		lo, hi = min(lo, x), max(hi, x)
	}
	return mean, lo, hi, nil
}

// nonblockingCase measures how much of a collective other work can hide, as
// OSU does: first alone, then with as long a computation between its start and
// its end. Overlap is 100 % if both together take no longer than the longer.
func nonblockingCase(b *state, k *collective) (*testCase, error) {
	return &testCase{
		run: func(ctx context.Context, warmup, iters int) ([]float64, error) {
			pure, err := b.timeEach(ctx, warmup, iters, k.startAndWait)
			if err != nil {
				return nil, err
			}
			goal := pure / time.Duration(iters)
			var overall, started, computed, waited time.Duration
			for i := range warmup + iters {
				t0 := time.Now()
				r, err := k.start()
				if err != nil {
					return nil, err
				}
				t1 := time.Now()
				compute(goal)
				t2 := time.Now()
				if _, err := r.Wait(ctx); err != nil {
					return nil, err
				}
				t3 := time.Now()
				r.Free()
				if i >= warmup {
					overall += t3.Sub(t0)
					started += t1.Sub(t0)
					computed += t2.Sub(t1)
					waited += t3.Sub(t2)
				}
				if err := mpi.Barrier(ctx, b.c); err != nil {
					return nil, err
				}
			}
			v := []float64{micros(overall, iters), micros(computed, iters), micros(pure, iters), 0,
				micros(started, iters), micros(waited, iters), 0, 0}
			for i := range v[:6] {
				mean, lo, hi, err := b.spread(ctx, v[i])
				if err != nil {
					return nil, err
				}
				if v[i] = mean; i == 2 {
					v[6], v[7] = lo, hi
				}
			}
			v[3] = max(0, 100-(v[0]-v[1])/v[2]*100)
			return v, nil
		},
		check: func(ctx context.Context) error {
			k.fill()
			if err := k.startAndWait(ctx); err != nil {
				return err
			}
			return k.check()
		},
	}, nil
}

// timeEach returns how long the calls after the warm-up took, with a barrier
// between them that is not timed.
func (b *state) timeEach(
	ctx context.Context, warmup, iters int, call func(context.Context) error,
) (took time.Duration, err error) {
	for i := range warmup + iters {
		start := time.Now()
		if err := call(ctx); err != nil {
			return 0, err
		}
		if i >= warmup {
			took += time.Since(start)
		}
		if err := mpi.Barrier(ctx, b.c); err != nil {
			return 0, err
		}
	}
	return took, nil
}

func (k *collective) startAndWait(ctx context.Context) error {
	r, err := k.start()
	if err != nil {
		return err
	}
	_, err = r.Wait(ctx)
	r.Free()
	return err
}

// compute keeps the processor busy.
func compute(d time.Duration) {
	start := time.Now()
	x := 1.0
	for time.Since(start) < d {
		for range 64 {
			x = x*1.0000001 + 1e-9
		}
	}
	runtime.KeepAlive(x)
}

// block is the part of rank r in a buffer of equal blocks.
func block(b []byte, r, size int) []byte { return b[r*size : (r+1)*size] }

// checkBlocks checks that block r is the data of rank of(r).
func checkBlocks(b []byte, ranks, size int, of func(r int) int) error {
	for r := range ranks {
		if err := checkPattern(block(b, r, size), of(r)); err != nil {
			return fmt.Errorf("block %d: %w", r, err)
		}
	}
	return nil
}

// counts is n for every rank.
func (b *state) counts(n int) []int {
	c := make([]int, b.size)
	for i := range c {
		c[i] = n
	}
	return c
}

func itself(r int) int { return r }

func nothing() error { return nil }

func collBarrier(b *state, _ int) *collective {
	return &collective{
		call:  func(ctx context.Context) error { return mpi.Barrier(ctx, b.c) },
		start: func() (*mpi.Request, error) { return mpi.Ibarrier(b.c) },
		init:  func() (*mpi.Persistent, error) { return mpi.BarrierInit(b.c) },
		fill:  func() {}, check: nothing,
	}
}

func collBcast(b *state, size int) *collective {
	buf := memory[byte](size)
	return &collective{
		call:  func(ctx context.Context) error { return mpi.Bcast(ctx, b.c, buf, 0) },
		start: func() (*mpi.Request, error) { return mpi.Ibcast(b.c, buf, 0) },
		init:  func() (*mpi.Persistent, error) { return mpi.BcastInit(b.c, buf, 0) },
		fill: func() {
			if clear(buf); b.me == 0 {
				fillPattern(buf, 0)
			}
		},
		check: func() error { return checkPattern(buf, 0) },
	}
}

// gatherCase collects one block of every rank; recv is nil where none come.
func gatherCase(b *state, send, recv []byte) *collective {
	return &collective{
		fill: func() { fillPattern(send, b.me); clear(recv) },
		check: func() error {
			if recv == nil {
				return nil
			}
			return checkBlocks(recv, b.size, len(send), itself)
		},
	}
}

func collAllgather(b *state, size int) *collective {
	send, recv := memory[byte](size), memory[byte](b.size*size)
	return gatherCase(b, send, recv).by(
		func(ctx context.Context) error { return mpi.Allgather(ctx, b.c, send, recv) },
		func() (*mpi.Request, error) { return mpi.Iallgather(b.c, send, recv) },
		func() (*mpi.Persistent, error) { return mpi.AllgatherInit(b.c, send, recv) })
}

func collAllgatherv(b *state, size int) *collective {
	send, recv, counts := memory[byte](size), memory[byte](b.size*size), b.counts(size)
	return gatherCase(b, send, recv).by(
		func(ctx context.Context) error { return mpi.Allgatherv(ctx, b.c, send, recv, counts, nil) },
		func() (*mpi.Request, error) { return mpi.Iallgatherv(b.c, send, recv, counts, nil) },
		func() (*mpi.Persistent, error) { return mpi.AllgathervInit(b.c, send, recv, counts, nil) })
}

// atRoot returns buffers of one rank's block, and of all blocks at the root.
func (b *state) atRoot(size int) (one, all []byte) {
	if b.me == 0 {
		all = memory[byte](b.size * size)
	}
	return memory[byte](size), all
}

func collGather(b *state, size int) *collective {
	send, recv := b.atRoot(size)
	return gatherCase(b, send, recv).by(
		func(ctx context.Context) error { return mpi.Gather(ctx, b.c, send, recv, 0) },
		func() (*mpi.Request, error) { return mpi.Igather(b.c, send, recv, 0) },
		func() (*mpi.Persistent, error) { return mpi.GatherInit(b.c, send, recv, 0) })
}

func collGatherv(b *state, size int) *collective {
	send, recv := b.atRoot(size)
	counts := b.counts(size)
	return gatherCase(b, send, recv).by(
		func(ctx context.Context) error { return mpi.Gatherv(ctx, b.c, send, recv, counts, nil, 0) },
		func() (*mpi.Request, error) { return mpi.Igatherv(b.c, send, recv, counts, nil, 0) },
		func() (*mpi.Persistent, error) { return mpi.GathervInit(b.c, send, recv, counts, nil, 0) })
}

func scatterCase(b *state, send, recv []byte) *collective {
	return &collective{
		fill: func() {
			clear(recv)
			for r := 0; r < b.size && b.me == 0; r++ {
				fillPattern(block(send, r, len(recv)), r)
			}
		},
		check: func() error { return checkPattern(recv, b.me) },
	}
}

func collScatter(b *state, size int) *collective {
	recv, send := b.atRoot(size)
	return scatterCase(b, send, recv).by(
		func(ctx context.Context) error { return mpi.Scatter(ctx, b.c, send, recv, 0) },
		func() (*mpi.Request, error) { return mpi.Iscatter(b.c, send, recv, 0) },
		func() (*mpi.Persistent, error) { return mpi.ScatterInit(b.c, send, recv, 0) })
}

func collScatterv(b *state, size int) *collective {
	recv, send := b.atRoot(size)
	counts := b.counts(size)
	return scatterCase(b, send, recv).by(
		func(ctx context.Context) error { return mpi.Scatterv(ctx, b.c, send, recv, counts, nil, 0) },
		func() (*mpi.Request, error) { return mpi.Iscatterv(b.c, send, recv, counts, nil, 0) },
		func() (*mpi.Persistent, error) { return mpi.ScattervInit(b.c, send, recv, counts, nil, 0) })
}

func alltoallCase(b *state, send, recv []byte, size int) *collective {
	return &collective{
		fill: func() {
			clear(recv)
			for r := range b.size {
				fillPattern(block(send, r, size), b.me*b.size+r)
			}
		},
		check: func() error { return checkBlocks(recv, b.size, size, func(r int) int { return r*b.size + b.me }) },
	}
}

func collAlltoall(b *state, size int) *collective {
	send, recv := memory[byte](b.size*size), memory[byte](b.size*size)
	return alltoallCase(b, send, recv, size).by(
		func(ctx context.Context) error { return mpi.Alltoall(ctx, b.c, send, recv) },
		func() (*mpi.Request, error) { return mpi.Ialltoall(b.c, send, recv) },
		func() (*mpi.Persistent, error) { return mpi.AlltoallInit(b.c, send, recv) })
}

func collAlltoallv(b *state, size int) *collective {
	send, recv, counts := memory[byte](b.size*size), memory[byte](b.size*size), b.counts(size)
	return alltoallCase(b, send, recv, size).by(
		func(ctx context.Context) error { return mpi.Alltoallv(ctx, b.c, send, counts, nil, recv, counts, nil) },
		func() (*mpi.Request, error) { return mpi.Ialltoallv(b.c, send, counts, nil, recv, counts, nil) },
		func() (*mpi.Persistent, error) { return mpi.AlltoallvInit(b.c, send, counts, nil, recv, counts, nil) })
}

// reduceCase is a reduction of whole numbers, which float32 adds up exactly.
// ranks says how many of the first ranks the result is of; from is the element
// that the result begins with.
func reduceCase(b *state, send, recv []float32, from, ranks int) *collective {
	value := func(rank, i int) float32 { return float32((rank + 1) * (i%8 + 1)) }
	return &collective{
		fill: func() {
			for i := range send {
				send[i] = value(b.me, i)
			}
			clear(recv)
		},
		check: func() error {
			for i, v := range recv {
				want := float32(0)
				for r := range ranks {
					want += value(r, from+i)
				}
				if v != want {
					return fmt.Errorf("element %d is %g, want %g", i, v, want)
				}
			}
			return nil
		},
	}
}

func collAllreduce(b *state, size int) *collective {
	send, recv := memory[float32](size/4), memory[float32](size/4)
	return reduceCase(b, send, recv, 0, b.size).by(
		func(ctx context.Context) error { return mpi.Allreduce(ctx, b.c, send, recv, mpi.Sum) },
		func() (*mpi.Request, error) { return mpi.Iallreduce(b.c, send, recv, mpi.Sum) },
		func() (*mpi.Persistent, error) { return mpi.AllreduceInit(b.c, send, recv, mpi.Sum) })
}

func collReduce(b *state, size int) *collective {
	send, recv := memory[float32](size/4), []float32(nil)
	if b.me == 0 {
		recv = memory[float32](size / 4)
	}
	return reduceCase(b, send, recv, 0, b.size).by(
		func(ctx context.Context) error { return mpi.Reduce(ctx, b.c, send, recv, mpi.Sum, 0) },
		func() (*mpi.Request, error) { return mpi.Ireduce(b.c, send, recv, mpi.Sum, 0) },
		func() (*mpi.Persistent, error) { return mpi.ReduceInit(b.c, send, recv, mpi.Sum, 0) })
}

func collScan(b *state, size int) *collective {
	send, recv := memory[float32](size/4), memory[float32](size/4)
	return reduceCase(b, send, recv, 0, b.me+1).by(
		func(ctx context.Context) error { return mpi.Scan(ctx, b.c, send, recv, mpi.Sum) },
		func() (*mpi.Request, error) { return mpi.Iscan(b.c, send, recv, mpi.Sum) },
		func() (*mpi.Persistent, error) { return mpi.ScanInit(b.c, send, recv, mpi.Sum) })
}

func collExscan(b *state, size int) *collective {
	send, recv := memory[float32](size/4), memory[float32](size/4)
	return reduceCase(b, send, recv, 0, b.me).by(
		func(ctx context.Context) error { return mpi.Exscan(ctx, b.c, send, recv, mpi.Sum) },
		func() (*mpi.Request, error) { return mpi.Iexscan(b.c, send, recv, mpi.Sum) },
		func() (*mpi.Persistent, error) { return mpi.ExscanInit(b.c, send, recv, mpi.Sum) })
}

// collReduceScatter cuts a vector of the given size into almost equal parts.
func collReduceScatter(b *state, size int) *collective {
	total := size / 4
	counts := b.counts(total / b.size)
	for r := range total % b.size {
		counts[r]++
	}
	from := 0
	for _, n := range counts[:b.me] {
		from += n
	}
	send, recv := memory[float32](total), memory[float32](counts[b.me])
	return reduceCase(b, send, recv, from, b.size).by(
		func(ctx context.Context) error { return mpi.ReduceScatter(ctx, b.c, send, recv, counts, mpi.Sum) },
		func() (*mpi.Request, error) { return mpi.IreduceScatter(b.c, send, recv, counts, mpi.Sum) },
		func() (*mpi.Persistent, error) { return mpi.ReduceScatterInit(b.c, send, recv, counts, mpi.Sum) })
}

// collReduceScatterBlock gives every rank a block of the given size.
func collReduceScatterBlock(b *state, size int) *collective {
	n := size / 4
	send, recv := memory[float32](n*b.size), memory[float32](n)
	return reduceCase(b, send, recv, n*b.me, b.size).by(
		func(ctx context.Context) error { return mpi.ReduceScatterBlock(ctx, b.c, send, recv, mpi.Sum) },
		func() (*mpi.Request, error) { return mpi.IreduceScatterBlock(b.c, send, recv, mpi.Sum) },
		func() (*mpi.Persistent, error) { return mpi.ReduceScatterBlockInit(b.c, send, recv, mpi.Sum) })
}
