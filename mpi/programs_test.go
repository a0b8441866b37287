package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi"
)

// Small programs as people bring them from C, each with what several chapters of
// the standard have to offer, against a reference that one process can compute.

// ported runs a program with 1 to 8 ranks on all transports.
func ported(t *testing.T, f func(ctx context.Context, w *mpi.World) error, opts ...mpi.Option) {
	t.Helper()
	for _, tr := range []string{mpi.TransportInproc, mpi.TransportHybrid, mpi.TransportSCTP, mpi.TransportTCP, sharedMemory} {
		ranks := []int{1, 2, 5, 8}
		if testing.Short() {
			ranks = []int{1, 4}
		}
		for _, n := range ranks {
			t.Run(fmt.Sprintf("transport=%s/ranks=%d", tr, n), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				if err := mpi.RunLocal(ctx, n, f, append(opts, over(tr)...)...); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// sharedMemory stands for TransportHybrid with memory that ranks share.
const sharedMemory = "shared"

func over(tr string) []mpi.Option {
	if tr == sharedMemory {
		return []mpi.Option{mpi.WithTransport(mpi.TransportHybrid), mpi.WithSharedMemory(true)}
	}
	return []mpi.Option{mpi.WithTransport(tr)}
}

// TestPortedStencil smooths a ring-shaped field in two dimensions: the halo goes
// to four neighbours with one NeighborAlltoallw of subarrays, in place.
func TestPortedStencil(t *testing.T) {
	const size, steps = 24, 5
	cell := func(i, j int) float64 { return float64((i*31 + j*17) % 101) }
	ref := make([][]float64, size)
	for i := range ref {
		ref[i] = make([]float64, size)
		for j := range ref[i] {
			ref[i][j] = cell(i, j)
		}
	}
	for range steps {
		next := make([][]float64, size)
		for i := range next {
			next[i] = make([]float64, size)
			for j := range next[i] {
				next[i][j] = (ref[i][j] + ref[(i+1)%size][j] + ref[(i+size-1)%size][j] + ref[i][(j+1)%size] + ref[i][(j+size-1)%size]) / 5
			}
		}
		ref = next
	}
	ported(t, func(ctx context.Context, w *mpi.World) error {
		dims, err := mpi.Dims(w.Size(), 0, 0)
		if err != nil {
			return err
		}
		g, err := mpi.NewCart(ctx, w.Comm(), dims, []bool{true, true})
		if err != nil {
			return err
		}
		at := g.Coords(g.Comm().Rank())
		lo := func(d, k int) int { return k * size / dims[d] }
		i0, j0 := lo(0, at[0]), lo(1, at[1])
		n, m := lo(0, at[0]+1)-i0, lo(1, at[1]+1)-j0
		a := make([]float64, (n+2)*(m+2))
		for i := range n {
			for j := range m {
				a[(i+1)*(m+2)+j+1] = cell(i0+i, j0+j)
			}
		}
		part := func(h, w, i, j int) *mpi.Datatype {
			return mpi.MustType(mpi.TypeSubarray([]int{n + 2, m + 2}, []int{h, w}, []int{i, j}, mpi.RowMajor, mpi.MustType(mpi.TypeOf[float64]())))
		}
		out := []*mpi.Datatype{part(1, m, 1, 1), part(1, m, n, 1), part(n, 1, 1, 1), part(n, 1, 1, m)}
		in := []*mpi.Datatype{part(1, m, 0, 1), part(1, m, n+1, 1), part(n, 1, 1, 0), part(n, 1, 1, m+1)}
		ones, zeros := []int{1, 1, 1, 1}, []int{0, 0, 0, 0}
		b := slices.Clone(a)
		for range steps {
			if err := mpi.NeighborAlltoallw(ctx, g, a, ones, zeros, out, a, ones, zeros, in); err != nil {
				return err
			}
			for i := 1; i <= n; i++ {
				for j := 1; j <= m; j++ {
					k := i*(m+2) + j
					b[k] = (a[k] + a[k+m+2] + a[k-m-2] + a[k+1] + a[k-1]) / 5
				}
			}
			a, b = b, a
		}
		for i := range n {
			for j := range m {
				if got, want := a[(i+1)*(m+2)+j+1], ref[i0+i][j0+j]; got-want > 1e-12 || want-got > 1e-12 {
					return fmt.Errorf("cell %d,%d is %g, want %g", i0+i, j0+j, got, want)
				}
			}
		}
		return nil
	})
}

// TestPortedSampleSort sorts with Alltoallv, where many blocks are empty.
func TestPortedSampleSort(t *testing.T) {
	ported(t, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		p, me := c.Size(), c.Rank()
		rng := rand.New(rand.NewPCG(7, uint64(me)))
		keys := make([]int32, 500*(me%3)) // some ranks have none
		for i := range keys {
			keys[i] = rng.Int32N(50) - 25
		}
		slices.Sort(keys)
		cut := func(i int) int32 { return int32(-25 + 50*i/p) }
		counts, displs := make([]int, p), make([]int, p)
		for i := range p {
			from, _ := slices.BinarySearch(keys, cut(i))
			to := len(keys)
			if i < p-1 {
				to, _ = slices.BinarySearch(keys, cut(i+1))
			}
			counts[i], displs[i] = to-from, from
		}
		theirs := make([]int, p)
		if err := mpi.Alltoall(ctx, c, counts, theirs); err != nil {
			return err
		}
		places, total := make([]int, p), 0
		for i, n := range theirs {
			places[i] = total
			total += n
		}
		mine := make([]int32, total)
		if err := mpi.Alltoallv(ctx, c, keys, counts, displs, mine, theirs, places); err != nil {
			return err
		}
		slices.Sort(mine)
		if total > 0 && (mine[0] < cut(me) || me < p-1 && mine[total-1] >= cut(me+1)) {
			return fmt.Errorf("rank %d has %d to %d", me, mine[0], mine[total-1])
		}
		sums := []int64{int64(len(keys)), 0, -int64(total), 0}
		for _, k := range keys {
			sums[1] += int64(k) * int64(k)
		}
		for _, k := range mine {
			sums[3] -= int64(k) * int64(k)
		}
		if err := mpi.Allreduce(ctx, c, sums, sums, mpi.Sum); err != nil || sums[0]+sums[2] != 0 || sums[1]+sums[3] != 0 {
			return fmt.Errorf("sums %v, %w", sums, err)
		}
		return nil
	})
}

// TestPortedFarm has a master that learns the lengths of results from Probe, and
// workers with several goroutines that take tasks with Mprobe.
func TestPortedFarm(t *testing.T) {
	const tasks, tagTask, tagStop = 60, 1, 2
	ported(t, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		if c.Size() == 1 {
			return nil
		}
		if c.Rank() > 0 {
			const threads = 3
			errc := make(chan error, threads)
			for range threads {
				go func() {
					errc <- func() error {
						for {
							m, err := mpi.Mprobe(ctx, c, 0, mpi.AnyTag)
							if err != nil {
								return err
							}
							n, err := mpi.Count[int64](m.Status())
							if err != nil {
								return err
							}
							buf := make([]int64, n)
							st, err := mpi.Mrecv(ctx, m, buf)
							if err != nil || st.Tag == tagStop {
								return err
							}
							// As many squares as the task says.
							out := make([]int64, buf[0])
							for i := range out {
								out[i] = buf[0] * int64(i)
							}
							if err := mpi.Send(ctx, c, out, 0, int(buf[0])); err != nil {
								return err
							}
						}
					}()
				}()
			}
			var errs []error
			for range threads {
				errs = append(errs, <-errc)
			}
			return errors.Join(errs...)
		}
		next, seen := 1, make(map[int]bool)
		give := func(to int) error {
			if next > tasks {
				return nil
			}
			next++
			return mpi.Send(ctx, c, []int64{int64(next - 1)}, to, tagTask)
		}
		for r := 1; r < c.Size(); r++ {
			for range 3 {
				if err := give(r); err != nil {
					return err
				}
			}
		}
		for len(seen) < tasks {
			st, err := mpi.Probe(ctx, c, mpi.AnySource, mpi.AnyTag)
			if err != nil {
				return err
			}
			n, err := mpi.Count[int64](st)
			if err != nil || n != st.Tag || seen[n] {
				return fmt.Errorf("result %+v of %d, %w", st, n, err)
			}
			seen[n] = true
			out := make([]int64, n)
			if _, err := mpi.Recv(ctx, c, out, st.Source, st.Tag); err != nil || out[n-1] != int64(n*(n-1)) {
				return fmt.Errorf("result %v, %w", out, err)
			}
			if err := give(st.Source); err != nil {
				return err
			}
		}
		for r := 1; r < c.Size(); r++ {
			for range 3 {
				if err := mpi.Send(ctx, c, []int64{}, r, tagStop); err != nil {
					return err
				}
			}
		}
		return nil
	}, mpi.WithUnexpected(1<<16))
}

// TestPortedCounters counts in the window of rank 0 in four ways.
func TestPortedCounters(t *testing.T) {
	const each = 15
	ported(t, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		win, err := mpi.WinAllocate[int64](ctx, c, 4)
		if err != nil {
			return err
		}
		for range each {
			if err := win.Lock(ctx, mpi.LockExclusive, 0); err != nil { // read, add, write back
				return err
			}
			var x [1]int64
			if err := win.Get(ctx, x[:], 0, 0); err != nil {
				return err
			}
			if err := win.Flush(ctx, 0); err != nil {
				return err
			}
			x[0]++
			if err := errors.Join(win.Put(ctx, x[:], 0, 0), win.Unlock(ctx, 0)); err != nil {
				return err
			}
			if err := win.Lock(ctx, mpi.LockShared, 0); err != nil {
				return err
			}
			if err := win.Accumulate(ctx, []int64{1}, 0, 1, mpi.Sum); err != nil {
				return err
			}
			if _, err := win.FetchAndOp(ctx, 1, 0, 2, mpi.Sum); err != nil {
				return err
			}
			for old := int64(0); ; { // as spin locks do
				was, err := win.CompareAndSwap(ctx, old, old+1, 0, 3)
				if err != nil {
					return err
				}
				if was == old {
					break
				}
				old = was
			}
			if err := win.Unlock(ctx, 0); err != nil {
				return err
			}
		}
		if err := mpi.Barrier(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := win.Lock(ctx, mpi.LockShared, 0); err != nil {
				return err
			}
			want := int64(each * c.Size())
			if b := win.Buf(); !slices.Equal(b, []int64{want, want, want, want}) {
				return fmt.Errorf("counters %v, want %d", b, want)
			}
			if err := win.Unlock(ctx, 0); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
}

// TestPortedIntercomm lets the odd and the even ranks talk as groups.
func TestPortedIntercomm(t *testing.T) {
	ported(t, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		if c.Size() == 1 {
			return nil
		}
		odd := c.Rank() % 2
		half, err := c.Split(ctx, odd, -c.Rank()) // in reverse
		if err != nil {
			return err
		}
		// The leaders are the highest of both.
		leader := c.Size() - 1
		if leader%2 == odd {
			leader--
		}
		inter, err := mpi.IntercommCreate(ctx, half, 0, c, leader, 5)
		if err != nil {
			return err
		}
		root := mpi.ProcNull
		switch {
		case odd == 1:
			root = 0
		case half.Rank() == 0:
			root = mpi.Root
		}
		word := []int{half.Size()}
		if err := mpi.Bcast(ctx, inter, word, root); err != nil {
			return err
		}
		if odd == 1 && word[0] != inter.RemoteSize() {
			return fmt.Errorf("heard %d, want %d", word[0], inter.RemoteSize())
		}
		sum := []int{0}
		if err := mpi.Allreduce(ctx, inter, []int{c.Rank()}, sum, mpi.Sum); err != nil {
			return err
		}
		want := 0
		for r := 1 - odd; r < c.Size(); r += 2 {
			want += r
		}
		if sum[0] != want {
			return fmt.Errorf("sum of the others %d, want %d", sum[0], want)
		}
		got, err := mpi.AlltoallSlices(ctx, inter, slices.Repeat([][]int{{c.Rank()}}, inter.RemoteSize()))
		if err != nil {
			return err
		}
		for i, b := range got {
			if len(b) != 1 || b[0]%2 == odd || i > 0 && b[0] != got[i-1][0]-2 {
				return fmt.Errorf("from the others %v", got)
			}
		}
		all, err := inter.IntercommMerge(ctx, odd == 1)
		if err != nil {
			return err
		}
		order := make([]int, all.Size())
		if err := mpi.Allgather(ctx, all, []int{c.Rank()}, order); err != nil {
			return err
		}
		for i := 1; i < len(order); i++ {
			if order[i-1]%2 > order[i]%2 || order[i-1]%2 == order[i]%2 && order[i-1] < order[i] {
				return fmt.Errorf("merged to %v", order)
			}
		}
		return nil
	})
}

// TestPortedMatrixFile writes a matrix that is dealt out in blocks (darray) with one
// collective call, reads it transposed with another, and adds a line to a log.
func TestPortedMatrixFile(t *testing.T) {
	dir := t.TempDir()
	ported(t, func(ctx context.Context, w *mpi.World) error {
		const rows, cols = 13, 11
		c := w.Comm()
		name := filepath.Join(dir, fmt.Sprint(w.Transport(), c.Size()))
		grid, err := mpi.Dims(c.Size(), 0, 0)
		if err != nil {
			return err
		}
		word := mpi.MustType(mpi.TypeOf[int32]())
		mine, err := mpi.TypeDarray(c.Rank(), []int{rows, cols}, []mpi.Dist{mpi.DistCyclic(2), mpi.DistCyclic(3)}, grid, mpi.RowMajor, word)
		if err != nil {
			return err
		}
		f, err := mpi.FileOpen[int32](ctx, c, name, mpi.FileReadWrite|mpi.FileCreate, nil)
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, 0, mine, mpi.External32); err != nil {
			return err
		}
		// The elements of the view in their order: those whose blocks are dealt here.
		var values []int32
		at := []int{c.Rank() / grid[1], c.Rank() % grid[1]}
		for i := range rows {
			for j := range cols {
				if i/2%grid[0] == at[0] && j/3%grid[1] == at[1] {
					values = append(values, int32(i*cols+j))
				}
			}
		}
		if n, err := f.WriteAll(ctx, values); n != len(values) || err != nil {
			return fmt.Errorf("wrote %d of %d, %w", n, len(values), err)
		}
		// Each rank reads columns, one after the other.
		col := mpi.MustType(mpi.TypeVector(rows, 1, cols, word))
		if err := f.SetView(ctx, int64(4*(c.Rank()%cols)), col, mpi.External32); err != nil {
			return err
		}
		back := make([]int32, rows)
		r, err := f.IreadAtAll(0, back)
		if err != nil {
			return err
		}
		if st, err := r.Wait(ctx); err != nil || st.Bytes != 4*rows {
			return fmt.Errorf("read %+v, %w", st, err)
		}
		for i, v := range back {
			if v != int32(i*cols+c.Rank()%cols) {
				return fmt.Errorf("column %d is %v", c.Rank()%cols, back)
			}
		}
		return f.Close(ctx)
	})
}

// matrix2 is a 2×2 matrix; their product does not commute.
type matrix2 struct{ A, B, C, D uint32 }

func (m matrix2) times(n matrix2) matrix2 {
	return matrix2{m.A*n.A + m.B*n.C, m.A*n.B + m.B*n.D, m.C*n.A + m.D*n.C, m.C*n.B + m.D*n.D}
}

// TestPortedProducts multiplies matrices in the order of the ranks with all kinds
// of reductions.
func TestPortedProducts(t *testing.T) {
	product := mpi.NewOp(matrix2.times, false)
	ported(t, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		p, me := c.Size(), c.Rank()
		for _, n := range []int{1, 3 * p, 1000 * p} {
			of := func(r, i int) matrix2 { return matrix2{uint32(r + 1), uint32(i), 1, uint32(r ^ i)} }
			upTo := func(last, i int) matrix2 {
				m := matrix2{1, 0, 0, 1}
				for r := range last {
					m = m.times(of(r, i))
				}
				return m
			}
			send, recv := make([]matrix2, n), make([]matrix2, n)
			for i := range send {
				send[i] = of(me, i)
			}
			check := func(what string, got []matrix2, first, last int) error {
				for i, m := range got {
					if want := upTo(last, first+i); m != want {
						return fmt.Errorf("%s of %d: element %d is %v, want %v", what, n, i, m, want)
					}
				}
				return nil
			}
			if err := errors.Join(mpi.Allreduce(ctx, c, send, recv, product), check("allreduce", recv, 0, p)); err != nil {
				return err
			}
			if err := errors.Join(mpi.Scan(ctx, c, send, recv, product), check("scan", recv, 0, me+1)); err != nil {
				return err
			}
			if err := mpi.Exscan(ctx, c, send, recv, product); err != nil {
				return err
			}
			if me > 0 {
				if err := check("exscan", recv, 0, me); err != nil {
					return err
				}
			}
			for root := range p {
				if err := mpi.Reduce(ctx, c, send, recv, product, root); err != nil {
					return err
				}
				if me == root {
					if err := check("reduce", recv, 0, p); err != nil {
						return err
					}
				}
			}
			if n%p == 0 {
				part := recv[:n/p]
				if err := errors.Join(mpi.ReduceScatterBlock(ctx, c, send, part, product), check("reduce_scatter", part, me*n/p, p)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestPortedPipeline moves a message through all ranks, in partitions of another
// size at each end, again and again.
func TestPortedPipeline(t *testing.T) {
	ported(t, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		const n = 240
		next, before := mpi.ProcNull, mpi.ProcNull
		if c.Rank() > 0 {
			before = c.Rank() - 1
		}
		if c.Rank() < c.Size()-1 {
			next = c.Rank() + 1
		}
		in, out := make([]int16, n), make([]int16, n)
		recv, err := mpi.PrecvInit(c, in, 6, before, 3)
		if err != nil {
			return err
		}
		send, err := mpi.PsendInit(c, out, 8, next, 3)
		if err != nil {
			return err
		}
		for round := range 10 {
			r, err := recv.Start()
			if err != nil {
				return err
			}
			s, err := send.Start()
			if err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			if before == mpi.ProcNull {
				for i := range in {
					in[i] = int16(i * round)
				}
			}
			errc := make(chan error, 8)
			for i := 7; i >= 0; i-- { // the last one first
				go func() {
					for k := i * n / 8; k < (i+1)*n/8; k++ {
						out[k] = in[k] + 1
					}
					errc <- send.Pready(i)
				}()
			}
			for range 8 {
				if err := <-errc; err != nil {
					return err
				}
			}
			if _, err := s.Wait(ctx); err != nil {
				return err
			}
			for i, v := range out {
				if v != int16(i*round+c.Rank()+1) {
					return fmt.Errorf("round %d: element %d is %d", round, i, v)
				}
			}
		}
		send.Free()
		recv.Free()
		return nil
	})
}

// TestPortedSurvivors loses a rank within a loop of reductions; the others go on
// with a smaller communicator, and agree where.
func TestPortedSurvivors(t *testing.T) {
	died := errors.New("died")
	for _, tr := range []string{mpi.TransportInproc, mpi.TransportHybrid, mpi.TransportSCTP, mpi.TransportTCP} {
		t.Run(tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			const p, victim, rounds = 5, 3, 12
			err := mpi.RunLocal(ctx, p, func(ctx context.Context, w *mpi.World) error {
				c := w.Comm()
				for round := 0; round < rounds; {
					if w.Rank() == victim && round == 4 {
						return died
					}
					sum := []int{0}
					err := mpi.Allreduce(ctx, c, []int{1}, sum, mpi.Sum)
					if err != nil && !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrRevoked) {
						return err
					}
					ok := uint64(1)
					if err != nil {
						ok = 0
						if e := c.Revoke(); e != nil {
							return e
						}
					}
					all, aerr := c.Agree(ctx, ok)
					if all == 1 && aerr == nil {
						if sum[0] != c.Size() {
							return fmt.Errorf("round %d: sum %d of %d", round, sum[0], c.Size())
						}
						round++
						continue
					}
					if aerr != nil && !errors.Is(aerr, mpi.ErrProcFailed) {
						return aerr
					}
					if c, err = c.Shrink(ctx); err != nil {
						return err
					}
				}
				if c.Size() != p-1 {
					return fmt.Errorf("%d ranks are left", c.Size())
				}
				return nil
			}, mpi.WithTransport(tr), mpi.WithFaultTolerance())
			if !errors.Is(err, died) {
				t.Error(err)
			}
			for _, e := range []error{mpi.ErrProcFailed, mpi.ErrRevoked, context.DeadlineExceeded} {
				if errors.Is(err, e) {
					t.Error(err)
				}
			}
		})
	}
}
