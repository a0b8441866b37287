package main

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// ring passes the world ranks of neighbours around a communicator.
func ring(ctx context.Context, c *mpi.Comm, number func(r int) int) error {
	n := c.Size()
	next, prev := (c.Rank()+1)%n, (c.Rank()+n-1)%n
	got := make([]int, 1)
	_, err := mpi.Sendrecv(ctx, c, []int{number(c.Rank())}, next, 0, got, prev, 0)
	if err == nil && got[0] != number(prev) {
		err = fmt.Errorf("rank %d of %v is %d, want %d", prev, c, got[0], number(prev))
	}
	return err
}

// communicators are split, duplicated and made from groups.
func communicators(ctx context.Context, c *mpi.Comm) error {
	n := c.Size()
	for _, colors := range []int{1, 2, 3, n} {
		s, err := c.Split(ctx, c.Rank()%colors, -c.Rank())
		if err != nil {
			return err
		}
		number := func(r int) int { return s.Group().WorldRank(r) }
		if number(s.Rank()) != c.Rank() {
			return fmt.Errorf("%d colours: rank %d is %d", colors, c.Rank(), number(s.Rank()))
		}
		if err := ring(ctx, s, number); err != nil {
			return err
		}
		s.Free()
	}
	// Those with even ranks, backwards.
	even, err := c.Group().RangeIncl(mpi.Range{First: (n - 1) / 2 * 2, Last: 0, Stride: -2})
	if err != nil {
		return err
	}
	if c.Rank()%2 == 0 {
		e, err := c.CreateGroup(ctx, even, 5)
		if err != nil {
			return err
		}
		if err := ring(ctx, e, even.WorldRank); err != nil {
			return err
		}
	}
	s, err := c.World().NewSession(nil)
	if err != nil {
		return err
	}
	all, err := s.Group(mpi.PsetWorld)
	if err != nil {
		return err
	}
	w, err := s.CommFromGroup(ctx, all, "check", nil)
	if err != nil {
		return err
	}
	return ring(ctx, w, func(r int) int { return r })
}

// intercommunicators connect the lower and the upper half of the ranks.
func intercommunicators(ctx context.Context, c *mpi.Comm) error {
	n := c.Size()
	if n < 2 {
		return nil
	}
	half := n / 2
	upper := c.Rank() >= half
	color, remoteLeader := 0, half
	if upper {
		color, remoteLeader = 1, 0
	}
	local, err := c.Split(ctx, color, 0)
	if err != nil {
		return err
	}
	ic, err := mpi.IntercommCreate(ctx, local, 0, c, remoteLeader, 1)
	if err != nil {
		return err
	}
	// Each half gets the sum of the other.
	want := 0
	for r := range n {
		if (r >= half) != upper {
			want += r
		}
	}
	sum := make([]int, 1)
	if err := mpi.Allreduce(ctx, ic, []int{c.Rank()}, sum, mpi.Sum[int]); err != nil || sum[0] != want {
		return fmt.Errorf("sum of the others is %d, want %d, %w", sum[0], want, err)
	}
	root := 0
	if !upper {
		root = mpi.ProcNull
		if ic.Rank() == 0 {
			root = mpi.Root
		}
	}
	word := []int{0}
	if root == mpi.Root {
		word[0] = 77
	}
	if err := mpi.Bcast(ctx, ic, word, root); err != nil || upper && word[0] != 77 {
		return fmt.Errorf("word %d from the other half, %w", word[0], err)
	}
	m, err := ic.IntercommMerge(ctx, !upper)
	if err != nil {
		return err
	}
	return ring(ctx, m, func(r int) int { return (r + half) % n })
}

// topologies exchange with the neighbours in a torus.
func topologies(ctx context.Context, c *mpi.Comm) error {
	dims, err := mpi.Dims(c.Size(), 0, 0)
	if err != nil {
		return err
	}
	t, err := mpi.NewCart(ctx, c, dims, []bool{true, false})
	if err != nil {
		return err
	}
	out, in := make([]int, 4), []int{-1, -1, -1, -1}
	for i := range out {
		out[i] = c.Rank()*10 + i
	}
	if err := mpi.NeighborAlltoall(ctx, t, out, in); err != nil {
		return err
	}
	sources, _ := t.Neighbors()
	for i, s := range sources {
		want := -1
		if s != mpi.ProcNull {
			want = s*10 + (i ^ 1)
		}
		if in[i] != want {
			return fmt.Errorf("from neighbour %d came %d, want %d", i, in[i], want)
		}
	}
	return nil
}
