package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi"
)

// same compares a result with what it must be.
func same(what string, got, want []int, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: wrong result of %d elements", what, len(got))
	}
	return nil
}

// value is element i of what rank r has for rank to.
func value(r, to, i int) int { return r*1_000_000 + to*10_000 + i }

func block(r, to, n int) []int {
	b := make([]int, n)
	for i := range b {
		b[i] = value(r, to, i)
	}
	return b
}

var counts = []int{1, 7, 1000, 20_000}

// collectives moves blocks in all ways, with every rank as root.
func collectives(ctx context.Context, c *mpi.Comm) error {
	n, me := c.Size(), c.Rank()
	for k, count := range counts {
		root := (k + 3) % n
		b := make([]int, count)
		if me == root {
			copy(b, block(root, 0, count))
		}
		err := mpi.Bcast(ctx, c, b, root)
		if err := same("bcast", b, block(root, 0, count), err); err != nil {
			return err
		}
		var all, fromAll, toMe []int
		for r := range n {
			all = append(all, block(me, r, count)...)
			fromAll = append(fromAll, block(r, 0, count)...)
			toMe = append(toMe, block(r, me, count)...)
		}
		got := make([]int, n*count)
		err = mpi.Gather(ctx, c, block(me, 0, count), got, root)
		want := fromAll
		if me != root {
			want = make([]int, n*count)
		}
		if err := same("gather", got, want, err); err != nil {
			return err
		}
		err = mpi.Allgather(ctx, c, block(me, 0, count), got)
		if err := same("allgather", got, fromAll, err); err != nil {
			return err
		}
		err = mpi.Alltoall(ctx, c, all, got)
		if err := same("alltoall", got, toMe, err); err != nil {
			return err
		}
		part := make([]int, count)
		err = mpi.Scatter(ctx, c, all, part, root)
		if err := same("scatter", part, block(root, me, count), err); err != nil {
			return err
		}
		// Rank r has r+1 elements.
		lists, err := mpi.AllgatherSlices(ctx, c, block(me, 0, me+1))
		if err != nil {
			return err
		}
		for r, list := range lists {
			if err := same("allgatherv", list, block(r, 0, r+1), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// reductions compares sums with those of a loop.
func reductions(ctx context.Context, c *mpi.Comm) error {
	n, me := c.Size(), c.Rank()
	sum := func(upTo, count int) []int {
		s := make([]int, count)
		for r := range upTo {
			for i := range s {
				s[i] += value(r, 0, i)
			}
		}
		return s
	}
	for k, count := range counts {
		own, got := block(me, 0, count), make([]int, count)
		root := (k + 1) % n
		err := mpi.Reduce(ctx, c, own, got, mpi.Sum[int], root)
		want := sum(n, count)
		if me != root {
			want = make([]int, count)
		}
		if err := same("reduce", got, want, err); err != nil {
			return err
		}
		err = mpi.Allreduce(ctx, c, own, got, mpi.Sum[int])
		if err := same("allreduce", got, sum(n, count), err); err != nil {
			return err
		}
		err = mpi.Scan(ctx, c, own, got, mpi.Sum[int])
		if err := same("scan", got, sum(me+1, count), err); err != nil {
			return err
		}
		clear(got)
		err = mpi.Exscan(ctx, c, own, got, mpi.Sum[int])
		if err := same("exscan", got, sum(me, count), err); err != nil {
			return err
		}
		err = mpi.ReduceScatterBlock(ctx, c, block(me, 0, n*count), got, mpi.Sum[int])
		if err := same("reduce-scatter", got, sum(n, n*count)[me*count:][:count], err); err != nil {
			return err
		}
	}
	// Matrices do not commute: the ranks must be combined in order.
	product := mpi.NewOp(multiply, false)
	got, want := make([]matrix, 1), matrix{1, 0, 0, 1}
	for r := range n {
		want = multiply(want, matrix{1, uint64(r + 1), uint64(r), 3})
	}
	if err := mpi.Allreduce(ctx, c, []matrix{{1, uint64(me + 1), uint64(me), 3}}, got, product); err != nil {
		return err
	}
	if got[0] != want {
		return fmt.Errorf("product of matrices %v, want %v", got[0], want)
	}
	return nil
}

type matrix [4]uint64

func multiply(a, b matrix) matrix {
	return matrix{a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3], a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3]}
}

// nonblocking has many collectives in progress at the same time.
func nonblocking(ctx context.Context, c *mpi.Comm) error {
	n, me := c.Size(), c.Rank()
	var reqs []*mpi.Request
	sums, alls := make([][]int, 20), make([][]int, 20)
	for i := range sums {
		sums[i], alls[i] = make([]int, 100), make([]int, n)
		r, err := mpi.Iallreduce(c, block(me, i, 100), sums[i], mpi.Sum[int])
		if err != nil {
			return err
		}
		s, err := mpi.Iallgather(c, []int{value(me, i, 0)}, alls[i])
		if err != nil {
			return err
		}
		b, err := mpi.Ibarrier(c)
		if err != nil {
			return err
		}
		reqs = append(reqs, r, s, b)
	}
	if _, err := mpi.Waitall(ctx, reqs...); err != nil {
		return err
	}
	for i := range sums {
		sum, all := 0, make([]int, n)
		for r := range n {
			sum += value(r, i, 99)
			all[r] = value(r, i, 0)
		}
		if sums[i][99] != sum || !slices.Equal(alls[i], all) {
			return fmt.Errorf("collective %d: %d, %v", i, sums[i][99], alls[i])
		}
	}
	return nil
}
