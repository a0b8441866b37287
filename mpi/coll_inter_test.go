package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// interRank is what a rank of TestInterCollectives knows.
type interRank struct {
	ctx  context.Context
	c    *Comm
	odd  int
	size [2]int // of both groups
}

// value is what rank r of a group contributes at place i.
func (x *interRank) value(group, r, i int) int { return 1000*(group+1) + 100*r + i }

// mine returns n elements of the caller.
func (x *interRank) mine(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = x.value(x.odd, x.c.Rank(), i)
	}
	return out
}

// theirs returns n elements of each rank of the other group.
func (x *interRank) theirs(n int) (out []int) {
	for r := range x.size[1-x.odd] {
		for i := range n {
			out = append(out, x.value(1-x.odd, r, i))
		}
	}
	return out
}

// sum returns the sums of what the ranks of a group contribute.
func (x *interRank) sum(group, n int) []int {
	out := make([]int, n)
	for r := range x.size[group] {
		for i := range out {
			out[i] += x.value(group, r, i)
		}
	}
	return out
}

// root returns what the caller gives as root when it is rank r of the even ones.
func (x *interRank) root(r int) int {
	switch {
	case x.odd == 1:
		return r
	case x.c.Rank() == r:
		return Root
	}
	return ProcNull
}

func wantInts(what string, got, want []int, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s = %v, want %v", what, got, want)
	}
	return nil
}

func TestInterCollectives(t *testing.T) { interCollectives(t) }

// TestInterCollectivesOfSites is TestInterCollectives with groups at one site each, at sites of which they share
// one, and with a group at two sites.
func TestInterCollectivesOfSites(t *testing.T) {
	for _, sites := range []string{"ABABA", "ABBBA", "ABACA"} {
		t.Run(sites, func(t *testing.T) { interCollectives(t, atSites(sites)) })
	}
}

// TestInterCollectivesCrossOnce counts what crosses between two groups at different sites: the buffer of a
// broadcast once, and in an allgather the blocks of a group once.
func TestInterCollectivesCrossOnce(t *testing.T) {
	const n, bytes = 5, 4096
	runInter(t, n, func(ctx context.Context, w *World, c *Comm) error {
		far := func() (sum uint64) {
			for r, p := range w.Stats().Peers {
				if r%2 != w.Rank()%2 {
					sum += p.Collective.Bytes
				}
			}
			return sum
		}
		x := &interRank{ctx: ctx, c: c, odd: w.Rank() % 2, size: [2]int{3, 2}}
		before := far()
		if err := Bcast(ctx, c, make([]byte, bytes), x.root(1)); err != nil {
			return err
		}
		want := uint64(0)
		if x.root(1) == Root {
			want = bytes
		}
		if got := far() - before; got != want {
			return fmt.Errorf("%d bytes sent to the other site by Bcast, want %d", got, want)
		}
		before, want = far(), 0
		if err := Allgather(ctx, c, make([]byte, bytes), make([]byte, bytes*c.RemoteSize())); err != nil {
			return err
		}
		if c.Rank() == 0 {
			want = uint64(bytes * c.Size())
		}
		if got := far() - before; got != want {
			return fmt.Errorf("%d bytes sent to the other site by Allgather, want %d", got, want)
		}
		return nil
	}, atSites("ABABA"))
}

func interCollectives(t *testing.T, opts ...Option) {
	t.Helper()
	const n = 5
	runInter(t, n, func(ctx context.Context, w *World, c *Comm) error {
		x := &interRank{ctx: ctx, c: c, odd: w.Rank() % 2, size: [2]int{3, 2}}
		for r := range x.size[0] {
			if err := errors.Join(x.rooted(r, 3), x.rooted(r, 3000)); err != nil {
				return fmt.Errorf("root %d: %w", r, err)
			}
		}
		if err := errors.Join(x.both(2), x.both(2000), x.slices(), x.refused()); err != nil {
			return err
		}
		return x.together()
	}, opts...)
}

// rooted checks the collectives that go from, or to, rank root of the even
// ranks.
func (x *interRank) rooted(root, n int) error {
	c, ctx, arg := x.c, x.ctx, x.root(root)
	isRoot, gets := arg == Root, x.odd == 1
	b := make([]int, n)
	if isRoot {
		copy(b, x.mine(n))
	}
	err := Bcast(ctx, c, b, arg)
	want := make([]int, n)
	if isRoot || gets {
		for i := range want {
			want[i] = x.value(0, root, i)
		}
	}
	if err := wantInts("bcast", b, want, err); err != nil {
		return err
	}
	sum := make([]int, n)
	err = Reduce(ctx, c, x.mine(n), sum, Sum[int], arg)
	want = make([]int, n)
	if isRoot {
		want = x.sum(1, n)
	}
	if err := wantInts("reduce", sum, want, err); err != nil {
		return err
	}
	var all []int
	if isRoot {
		all = make([]int, 2*n)
	}
	err = Gather(ctx, c, x.mine(n), all, arg)
	want = nil
	if isRoot {
		want = x.theirs(n)
	}
	if err := wantInts("gather", all, want, err); err != nil {
		return err
	}
	var counts []int
	if isRoot {
		counts = []int{1, 2}
		all = make([]int, 3)
		want = []int{x.value(1, 0, 0), x.value(1, 1, 0), x.value(1, 1, 1)}
	}
	err = Gatherv(ctx, c, x.mine(c.Rank()+1), all, counts, nil, arg)
	if err := wantInts("gatherv", all, want, err); err != nil {
		return err
	}
	var part []int
	want = nil
	if gets {
		part = make([]int, n)
		for i := range n {
			want = append(want, x.value(0, root, n*c.Rank()+i))
		}
	}
	err = Scatter(ctx, c, x.mine(2*n), part, arg)
	if err := wantInts("scatter", part, want, err); err != nil {
		return err
	}
	if gets {
		part, want = part[:c.Rank()+1], nil
		for i := range part {
			want = append(want, x.value(0, root, c.Rank()+i))
		}
	}
	err = Scatterv(ctx, c, x.mine(3), part, counts, nil, arg)
	return wantInts("scatterv", part, want, err)
}

// both checks the collectives that go both ways.
func (x *interRank) both(n int) error {
	c, ctx := x.c, x.ctx
	if err := Barrier(ctx, c); err != nil {
		return err
	}
	other, me := 1-x.odd, c.Rank()
	sum := make([]int, n)
	err := Allreduce(ctx, c, x.mine(n), sum, Sum[int])
	if err := wantInts("allreduce", sum, x.sum(other, n), err); err != nil {
		return err
	}
	// 6n elements are 2n for each of three ranks, 3n for each of two.
	block := 6 * n / x.size[x.odd]
	part, want := make([]int, block), x.sum(other, 6*n)[me*block:][:block]
	err = ReduceScatterBlock(ctx, c, x.mine(6*n), part, Sum[int])
	if err := wantInts("reduce-scatter-block", part, want, err); err != nil {
		return err
	}
	counts := [][]int{{n, 2 * n, 3 * n}, {n, 5 * n}}[x.odd]
	at := total(counts[:me])
	part, want = make([]int, counts[me]), x.sum(other, 6*n)[at:][:counts[me]]
	err = ReduceScatter(ctx, c, x.mine(6*n), part, counts, Sum[int])
	if err := wantInts("reduce-scatter", part, want, err); err != nil {
		return err
	}
	all := make([]int, n*c.RemoteSize())
	err = Allgather(ctx, c, x.mine(n), all)
	if err := wantInts("allgather", all, x.theirs(n), err); err != nil {
		return err
	}
	rcounts := make([]int, c.RemoteSize())
	want = nil
	for r := range rcounts {
		rcounts[r] = r + 1
		for i := range r + 1 {
			want = append(want, x.value(other, r, i))
		}
	}
	all = make([]int, len(want))
	err = Allgatherv(ctx, c, x.mine(me+1), all, rcounts, nil)
	if err := wantInts("allgatherv", all, want, err); err != nil {
		return err
	}
	return x.exchanges(n)
}

// exchanges checks the kinds of Alltoall. The even ranks send one element more
// to each.
func (x *interRank) exchanges(n int) error {
	c, ctx, me := x.c, x.ctx, x.c.Rank()
	remote := c.RemoteSize()
	integer, err := TypeOf[int]()
	if err != nil {
		return err
	}
	out, in := n+1-x.odd, n+x.odd
	var want, scounts, rcounts, ones []int
	var stypes, rtypes []*Datatype
	var sdispls, rdispls []int
	for r := range remote {
		for i := range in {
			want = append(want, x.value(1-x.odd, r, me*in+i))
		}
		scounts, rcounts, ones = append(scounts, out), append(rcounts, in), append(ones, 1)
		sdispls, rdispls = append(sdispls, integer.Size()*r*out), append(rdispls, integer.Size()*r*in)
		st, err := TypeContiguous(out, integer)
		if err != nil {
			return err
		}
		rt, err := TypeContiguous(in, integer)
		if err != nil {
			return err
		}
		stypes, rtypes = append(stypes, st), append(rtypes, rt)
	}
	got := make([]int, remote*in)
	err = Alltoall(ctx, c, x.mine(remote*out), got)
	if err := wantInts("alltoall", got, want, err); err != nil {
		return err
	}
	clear(got)
	err = Alltoallv(ctx, c, x.mine(remote*out), scounts, nil, got, rcounts, nil)
	if err := wantInts("alltoallv", got, want, err); err != nil {
		return err
	}
	clear(got)
	err = Alltoallw(ctx, c, x.mine(remote*out), ones, sdispls, stypes, got, ones, rdispls, rtypes)
	return wantInts("alltoallw", got, want, err)
}

// slices checks the collectives that need no counts.
func (x *interRank) slices() error {
	c, ctx, me := x.c, x.ctx, x.c.Rank()
	got, err := AllgatherSlices(ctx, c, x.mine(me))
	if err != nil {
		return err
	}
	for r, s := range got {
		if len(s) != r || r > 0 && s[0] != x.value(1-x.odd, r, 0) {
			return fmt.Errorf("allgather slices: rank %d sent %v", r, s)
		}
	}
	arg := x.root(1)
	if got, err = GatherSlices(ctx, c, x.mine(me), arg); err != nil {
		return err
	}
	if arg == Root && (len(got) != 2 || len(got[0]) != 0 || len(got[1]) != 1) || arg != Root && got != nil {
		return fmt.Errorf("gather slices = %v", got)
	}
	var send [][]int
	if arg == Root {
		send = [][]int{{7}, {8, 9}}
	}
	part, err := ScatterSlices(ctx, c, send, arg)
	want := [][]int{{7}, {8, 9}, {}}[2-x.odd*(2-me)]
	return wantInts("scatter slices", part, want, err)
}

// refused checks that bad arguments on all ranks leave the communicator usable.
func (x *interRank) refused() error {
	c, ctx := x.c, x.ctx
	b := make([]int, 2)
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"scan", Scan(ctx, c, b, b, Sum[int]), ErrComm},
		{"exscan", Exscan(ctx, c, b, b, Sum[int]), ErrComm},
		{"bcast", Bcast(ctx, c, b, 3), ErrRoot},
		{"allreduce", Allreduce(ctx, c, b, b[:1], Sum[int]), ErrCount},
		{"reduce", Reduce(ctx, c, b, b, nil, 0), ErrOp},
		{"reduce-scatter", ReduceScatter(ctx, c, b, b, []int{1}, Sum[int]), ErrCount},
		{"alltoallv", Alltoallv(ctx, c, b, []int{1}, nil, b, []int{1}, nil), ErrCount},
	} {
		if !errors.Is(tt.err, tt.want) {
			return fmt.Errorf("%s: %w, want %w", tt.name, tt.err, tt.want)
		}
	}
	return Barrier(ctx, c)
}

// together runs many nonblocking collectives at the same time.
func (x *interRank) together() error {
	var reqs []*Request
	var checks []func() error
	for i := range 20 {
		sum, all := make([]int, 10), make([]int, 10*x.c.RemoteSize())
		r, err := Iallreduce(x.c, x.mine(10), sum, Sum[int])
		if err != nil {
			return err
		}
		s, err := Iallgather(x.c, x.mine(10), all)
		if err != nil {
			return err
		}
		b, err := Ibarrier(x.c)
		if err != nil {
			return err
		}
		reqs = append(reqs, r, s, b)
		checks = append(checks, func() error {
			return errors.Join(wantInts(fmt.Sprint("iallreduce ", i), sum, x.sum(1-x.odd, 10), nil),
				wantInts(fmt.Sprint("iallgather ", i), all, x.theirs(10), nil))
		})
	}
	if _, err := Waitall(x.ctx, reqs...); err != nil {
		return err
	}
	for _, f := range checks {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
