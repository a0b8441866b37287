package mpi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDims(t *testing.T) {
	for _, tt := range []struct {
		n    int
		dims []int
		want []int
	}{
		{6, []int{0, 0}, []int{3, 2}},
		{7, []int{0, 0}, []int{7, 1}},
		{6, []int{0, 3, 0}, []int{2, 3, 1}},
		{24, []int{0, 0, 0}, []int{4, 3, 2}},
		{5040, []int{0, 0, 0}, []int{21, 16, 15}}, // not 20×18×14, whose sides differ more
		{35280, []int{0, 7, 0, 0}, []int{21, 7, 16, 15}},
		{64, []int{0, 0, 0}, []int{4, 4, 4}},
		{1, []int{0, 0}, []int{1, 1}},
		{12, []int{0}, []int{12}},
		{6, []int{3, 2}, []int{3, 2}},
		{7, []int{0, 3, 0}, nil},
		{6, []int{3, 1}, nil},
		{6, []int{-1, 0}, nil},
		{0, []int{0}, nil},
	} {
		got, err := Dims(tt.n, tt.dims...)
		if !slices.Equal(got, tt.want) || (tt.want == nil) != errors.Is(err, ErrTopology) {
			t.Errorf("Dims(%d, %v) = %v, %v, want %v", tt.n, tt.dims, got, err, tt.want)
		}
	}
}

func TestCart(t *testing.T) {
	local(t, 7, func(ctx context.Context, c *Comm) error {
		if _, err := NewCart(ctx, c, []int{2, 4}, []bool{true, true}); !errors.Is(err, ErrTopology) {
			return fmt.Errorf("grid too large: %v, want %v", err, ErrTopology)
		}
		if _, err := NewCart(ctx, c, []int{math.MaxInt, 4}, []bool{true, true}); !errors.Is(err, ErrTopology) {
			return fmt.Errorf("grid far too large: %v, want %v", err, ErrTopology)
		}
		g, err := NewCart(ctx, c, []int{2, 3}, []bool{true, false})
		if err != nil {
			return err
		}
		if (g == nil) != (c.Rank() == 6) {
			return fmt.Errorf("rank %d: grid %v", c.Rank(), g)
		}
		if g == nil {
			return nil
		}
		me := g.Comm().Rank()
		at := g.Coords(me)
		if want := []int{me / 3, me % 3}; !slices.Equal(at, want) {
			return fmt.Errorf("rank %d is at %v, want %v", me, at, want)
		}
		if r, err := g.Rank(at[0]-2, at[1]); r != me || err != nil {
			return fmt.Errorf("once round the ring is rank %d, %w", r, err)
		}
		if _, err := g.Rank(0, 3); !errors.Is(err, ErrRank) {
			return fmt.Errorf("outside the grid: %v, want %v", err, ErrRank)
		}
		for _, tt := range []struct{ dim, disp, source, target int }{
			{0, 1, (me + 3) % 6, (me + 3) % 6},
			{0, 2, me, me},
			{0, 4, me, me},
			{1, 1, []int{ProcNull, me - 1, me - 1}[at[1]], []int{me + 1, me + 1, ProcNull}[at[1]]},
			{1, -2, []int{me + 2, ProcNull, ProcNull}[at[1]], []int{ProcNull, ProcNull, me - 2}[at[1]]},
		} {
			if s, d, err := g.Shift(tt.dim, tt.disp); s != tt.source || d != tt.target || err != nil {
				return fmt.Errorf("rank %d shift of %d by %d: %d, %d, %v, want %d, %d", me, tt.dim, tt.disp, s, d, err, tt.source, tt.target)
			}
		}
		if _, _, err := g.Shift(2, 1); !errors.Is(err, ErrTopology) {
			return fmt.Errorf("no such dimension: %v, want %v", err, ErrTopology)
		}
		row, err := g.Sub(ctx, false, true)
		if err != nil {
			return err
		}
		sum := []int{me}
		if err := Allreduce(ctx, row.Comm(), sum, sum, Sum); err != nil {
			return err
		}
		if want := at[0]*9 + 3; row.Comm().Rank() != at[1] || sum[0] != want {
			return fmt.Errorf("rank %d is %d of a row with sum %d, want %d and %d", me, row.Comm().Rank(), sum[0], at[1], want)
		}
		return nil
	})
}

// TestNeighborCart exchanges numbers that say where they come from and where
// they go, in rings of one, two and more ranks, where neighbours coincide.
func TestNeighborCart(t *testing.T) {
	for _, dims := range [][]int{{1}, {2}, {5}, {2, 2}, {3, 2}, {1, 2, 3}} {
		for _, ring := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v,ring=%v", dims, ring), func(t *testing.T) {
				p := 1
				periods := make([]bool, len(dims))
				for i, d := range dims {
					p *= d
					periods[i] = ring
				}
				local(t, p, func(ctx context.Context, c *Comm) error {
					g, err := NewCart(ctx, c, dims, periods)
					if err != nil {
						return err
					}
					me := c.Rank()
					n := 2 * len(dims)
					// send[2d] goes down in dimension d, send[2d+1] up.
					send, recv := make([]int, n), make([]int, n)
					for i := range send {
						send[i] = me*100 + i
						recv[i] = -1
					}
					if len(dims)%2 == 0 {
						err = NeighborAlltoall(ctx, g, send, recv)
					} else {
						var r *Request
						if r, err = IneighborAlltoall(g, send, recv); err == nil {
							_, err = r.Wait(ctx)
						}
					}
					if err != nil {
						return err
					}
					sources, _ := g.Neighbors()
					for i, s := range sources {
						want := -1
						if s != ProcNull {
							want = s*100 + (i ^ 1) // what went this way
						}
						if recv[i] != want {
							return fmt.Errorf("rank %d: block %d = %d, want %d", me, i, recv[i], want)
						}
					}
					if err := NeighborAllgather(ctx, g, send[:1], recv); err != nil {
						return err
					}
					for i, s := range sources {
						if s != ProcNull && recv[i] != s*100 {
							return fmt.Errorf("rank %d gathered %v", me, recv)
						}
					}
					if err := NeighborAlltoall(ctx, g, send, recv[:n-1]); !errors.Is(err, ErrCount) {
						return fmt.Errorf("lengths: %v, want %v", err, ErrCount)
					}
					return Barrier(ctx, c)
				})
			})
		}
	}
}

// TestNeighborGraph exchanges blocks of different lengths in random graphs.
func TestNeighborGraph(t *testing.T) {
	seed := testSeed(t)
	for round := range 10 {
		const p = 5
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		var from, to [p][]int
		for range rng.IntN(20) {
			a, b := rng.IntN(p), rng.IntN(p)
			to[a], from[b] = append(to[a], b), append(from[b], a)
		}
		local(t, p, func(ctx context.Context, c *Comm) error {
			me := c.Rank()
			g, err := NewGraph(ctx, c, from[me], to[me])
			if err != nil {
				return err
			}
			nth := map[int]int{} // how many blocks of a pair there were
			var send, want []int
			var scounts, rcounts []int
			for _, r := range to[me] {
				n := (me+r+nth[r])%3 + 1
				for i := range n {
					send = append(send, me*1000+r*100+nth[r]*10+i)
				}
				scounts = append(scounts, n)
				nth[r]++
			}
			clear(nth)
			for _, r := range from[me] {
				n := (me+r+nth[r])%3 + 1
				for i := range n {
					want = append(want, r*1000+me*100+nth[r]*10+i)
				}
				rcounts = append(rcounts, n)
				nth[r]++
			}
			recv := make([]int, len(want))
			if err := NeighborAlltoallv(ctx, g, send, scounts, nil, recv, rcounts, nil); err != nil {
				return err
			}
			again := make([]int, len(want))
			r, err := IneighborAlltoallv(g, send, scounts, nil, again, rcounts, nil)
			if err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			if err := diff("again", again, want); err != nil {
				return err
			}
			if err := diff("recv", recv, want); err != nil {
				return err
			}
			counts := make([]int, len(from[me]))
			want = want[:0]
			for i, r := range from[me] {
				counts[i] = r + 1
				for range counts[i] {
					want = append(want, r)
				}
			}
			mine := make([]int, me+1)
			for i := range mine {
				mine[i] = me
			}
			recv = make([]int, len(want))
			if err := NeighborAllgatherv(ctx, g, mine, recv, counts, nil); err != nil {
				return err
			}
			if err := diff("gathered", recv, want); err != nil {
				return err
			}
			clear(recv)
			if r, err = IneighborAllgatherv(g, mine, recv, counts, nil); err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			if err := diff("gathered", recv, want); err != nil {
				return err
			}
			one := make([]int, len(from[me]))
			if r, err = IneighborAllgather(g, mine[:1], one); err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			return diff("one each", one, from[me])
		})
	}
	local(t, 1, func(ctx context.Context, c *Comm) error {
		if _, err := NewGraph(ctx, c, []int{1}, nil); !errors.Is(err, ErrRank) {
			return fmt.Errorf("source outside: %v, want %v", err, ErrRank)
		}
		return nil
	})
}

// TestDimsLarge compares Dims with trying all factors, and lets it divide numbers with
// large factors and with many: a search over all numbers would not end.
func TestDimsLarge(t *testing.T) {
	// all calls f with all divisions of n into k factors, the largest first and at most high.
	var all func(n, k, high int, head []int, f func([]int))
	all = func(n, k, high int, head []int, f func([]int)) {
		if k == 0 {
			if n == 1 {
				f(head)
			}
			return
		}
		for d := 1; d <= min(n, high); d++ {
			if n%d == 0 {
				all(n/d, k-1, d, append(head, d), f)
			}
		}
	}
	// MPI-4.1, Section 8.5.2: "as close to each other as possible".
	spread := func(d []int) int { return d[0] - d[len(d)-1] }
	better := func(a, b []int) bool {
		if d := spread(a) - spread(b); d != 0 {
			return d < 0
		}
		a, b = slices.Clone(a), slices.Clone(b)
		slices.Reverse(a)
		slices.Reverse(b)
		return slices.Compare(a, b) > 0
	}
	search := func(n, k int) (best []int) {
		all(n, k, n, nil, func(d []int) {
			if best == nil || better(d, best) {
				best = slices.Clone(d)
			}
		})
		return best
	}
	for n := 1; n <= 500; n++ {
		for k := 1; k <= 5; k++ {
			got, err := Dims(n, make([]int, k)...)
			if want := search(n, k); err != nil || !slices.Equal(got, want) {
				t.Fatalf("Dims(%d, %d dimensions) = %v, %v, want %v", n, k, got, err, want)
			}
		}
	}
	for _, tt := range []struct {
		n, k int
		want []int
	}{
		{math.MaxInt32, 3, []int{math.MaxInt32, 1, 1}},
		{46337 * 46337, 3, []int{46337, 46337, 1}},
		{2095133040, 4, []int{221, 216, 210, 209}}, // 1,536 divisors, the most there are
		{1 << 30, 4, []int{256, 256, 128, 128}},
		{1 << 30, 40, append(slices.Repeat([]int{2}, 30), slices.Repeat([]int{1}, 10)...)},
	} {
		got, err := Dims(tt.n, make([]int, tt.k)...)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("Dims(%d, %d dimensions) = %v, %v, want %v", tt.n, tt.k, got, err, tt.want)
		}
	}
	for n := math.MaxInt32 - 50; n <= math.MaxInt32-1; n++ {
		for k := 2; k <= 6; k++ {
			got, err := Dims(n, make([]int, k)...)
			product := 1
			for _, d := range got {
				product *= d
			}
			if err != nil || product != n || !slices.IsSortedFunc(got, func(a, b int) int { return b - a }) {
				t.Fatalf("Dims(%d, %d dimensions) = %v, %v", n, k, got, err)
			}
		}
	}
}

// TestTopologyDup duplicates communicators with a topology, and exchanges data with the
// neighbours on the duplicate (MPI-4.1, Section 8.4: MPI_Comm_dup keeps it).
func TestTopologyDup(t *testing.T) {
	const p = 4
	local(t, p, func(ctx context.Context, c *Comm) error {
		if c.Topology() != nil {
			return fmt.Errorf("the world has topology %v", c.Topology())
		}
		me := c.Rank()
		up, down := (me+1)%p, (me+p-1)%p
		cart, err := NewCart(ctx, c, []int{p}, []bool{true})
		if err != nil {
			return err
		}
		graph, err := NewWeightedGraph(ctx, c, []int{down, up}, []int{1, 2}, []int{up, down}, []int{1, 2})
		if err != nil {
			return err
		}
		neighbors := make([][]int, p)
		for r := range neighbors {
			neighbors[r] = []int{(r + p - 1) % p, (r + 1) % p}
		}
		full, err := NewFullGraph(ctx, c, neighbors)
		if err != nil {
			return err
		}
		sub, err := cart.Sub(ctx, true)
		if err != nil {
			return err
		}
		again, err := NewGraph(ctx, c, []int{down, up}, []int{up, down}, Reorder())
		if err != nil {
			return err
		}
		own, err := cart.Dup(ctx)
		if err != nil {
			return err
		}
		branch, err := graph.Dup(ctx)
		if err != nil {
			return err
		}
		if s, _ := branch.Weights(); !slices.Equal(s, []int{1, 2}) {
			return fmt.Errorf("weights of a duplicate: %v", s)
		}
		for i, of := range []Topology{cart, graph, full, sub, again, own, branch} {
			if of.Comm().Topology() != of {
				return fmt.Errorf("topology %d: its communicator has %v", i, of.Comm().Topology())
			}
			d, err := of.Comm().Dup(ctx)
			if err != nil {
				return err
			}
			t := d.Topology()
			if t == nil || t.Comm() != d || t == of {
				return fmt.Errorf("topology %d: that of a duplicate is %v", i, t)
			}
			rank := d.Rank()
			got := make([]int, 2)
			if err := NeighborAllgather(ctx, t, []int{rank}, got); err != nil {
				return err
			}
			if from, _ := t.Neighbors(); !slices.Equal(got, from) {
				return fmt.Errorf("topology %d: got %v from %v", i, got, from)
			}
			if s, err := d.Split(ctx, 0, 0); err != nil || s.Topology() != nil {
				return fmt.Errorf("topology %d: Split keeps it, %w", i, err)
			}
		}
		return nil
	})
}
