package mpi

import (
	"context"
	"fmt"
	"slices"
)

// Gathering and exchanging blocks of unequal length without counting: these functions exchange the
// lengths first, and allocate the result.

// GatherSlices returns the send buffers of all ranks at the root, by rank, and nil elsewhere
// (MPI_Gatherv). The buffers may have different lengths. It blocks until the caller's part is done;
// until then send belongs to the call, and what it returns is the caller's. Errors to test for:
// ErrRoot, ErrTypeMismatch, [RankError].
func GatherSlices[T Element](ctx context.Context, c *Comm, send []T, root int) ([][]T, error) {
	var counts []int
	if c.isRoot(root) {
		counts = make([]int, len(c.comm.Peers))
	}
	if err := Gather(ctx, c, []int{len(send)}, counts, root); err != nil {
		return nil, err
	}
	recv := make([]T, total(counts))
	if err := Gatherv(ctx, c, send, recv, counts, nil, root); err != nil || counts == nil {
		return nil, err
	}
	return split(recv, counts), nil
}

// ScatterSlices returns on each rank the slice of the root's send with its number (MPI_Scatterv).
// Elsewhere send is not used. It blocks until the caller's part is done; until then send belongs to
// the call, and what it returns is the caller's. Errors to test for: ErrRoot, ErrCount,
// ErrTypeMismatch, [RankError].
func ScatterSlices[T Element](ctx context.Context, c *Comm, send [][]T, root int) ([]T, error) {
	var counts []int
	var all []T
	if c.isRoot(root) {
		if len(send) != len(c.comm.Peers) {
			counts = noCounts(len(c.comm.Peers)) // the others are waiting
		} else {
			counts, all = flatten(send)
		}
	}
	n := make([]int, 1)
	if err := Scatter(ctx, c, counts, n, root); err != nil {
		return nil, err
	}
	if n[0] < 0 || c.isRoot(root) && len(send) != len(c.comm.Peers) {
		return nil, fmt.Errorf("%w: not one slice for each of %d ranks", ErrCount, len(c.comm.Peers))
	}
	recv := make([]T, n[0]) // none at the root of an intercommunicator
	return recv, Scatterv(ctx, c, all, recv, counts, nil, root)
}

// AllgatherSlices returns the send buffers of all ranks, by rank, on all ranks (MPI_Allgatherv).
// The buffers may have different lengths. It blocks until all data is there; until then send
// belongs to the call, and what it returns is the caller's. Errors to test for: ErrTypeMismatch,
// [RankError].
func AllgatherSlices[T Element](ctx context.Context, c *Comm, send []T) ([][]T, error) {
	counts := make([]int, len(c.comm.Peers))
	if err := Allgather(ctx, c, []int{len(send)}, counts); err != nil {
		return nil, err
	}
	recv := make([]T, total(counts))
	if err := Allgatherv(ctx, c, send, recv, counts, nil); err != nil {
		return nil, err
	}
	return split(recv, counts), nil
}

// AlltoallSlices sends send[i] to rank i and returns what came from each rank (MPI_Alltoallv). It
// blocks until all data is there; until then send belongs to the call, and what it returns is the
// caller's. Errors to test for: ErrCount, ErrTypeMismatch, [RankError].
func AlltoallSlices[T Element](ctx context.Context, c *Comm, send [][]T) ([][]T, error) {
	var all []T
	scounts, rcounts := noCounts(len(c.comm.Peers)), make([]int, len(c.comm.Peers)) // the others are waiting
	if len(send) == len(c.comm.Peers) {
		scounts, all = flatten(send)
	}
	if err := Alltoall(ctx, c, scounts, rcounts); err != nil {
		return nil, err
	}
	if len(send) != len(c.comm.Peers) {
		return nil, fmt.Errorf("%w: %d slices for %d ranks", ErrCount, len(send), len(c.comm.Peers))
	}
	if rank := slices.Index(rcounts, -1); rank >= 0 {
		return nil, fmt.Errorf("%w: rank %d has not one slice for each rank", ErrCount, rank)
	}
	recv := make([]T, total(rcounts))
	if err := Alltoallv(ctx, c, all, scounts, nil, recv, rcounts, nil); err != nil {
		return nil, err
	}
	return split(recv, rcounts), nil
}

// noCounts returns what a rank sends in place of the lengths of n slices that it lacks.
func noCounts(n int) []int { return slices.Repeat([]int{-1}, n) }

func total(counts []int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// split cuts v into parts of the given lengths, which it returns as slices
// that cannot grow into each other.
func split[T Element](v []T, counts []int) [][]T {
	out := make([][]T, len(counts))
	at := 0
	for i, n := range counts {
		out[i] = v[at : at+n : at+n]
		at += n
	}
	return out
}

// flatten returns the lengths of the slices and their elements in a row.
func flatten[T Element](v [][]T) ([]int, []T) {
	counts := make([]int, len(v))
	for i := range v {
		counts[i] = len(v[i])
	}
	return counts, slices.Concat(v...)
}
