package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/collective"
)

// NeighborAllgather sends send to all targets of the caller, and stores what comes from its ith
// source as the ith block of recv; all send buffers have the same length (MPI_Neighbor_allgather).
// Blocks of sources that are ProcNull are not changed (MPI-4.1, Section 8.6.1). It blocks until all
// neighbours' data is there; until then send and recv belong to the call. Errors to test for:
// ErrTopology, ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func NeighborAllgather[T Element](ctx context.Context, t Topology, send, recv []T) error {
	return finishOn(neighborAllgather(ctx, t, check(send, recv)))
}

// NeighborAllgatherv is NeighborAllgather with blocks of counts[i] elements at displs[i] of recv;
// if displs is nil they follow one another (MPI_Neighbor_allgatherv). It blocks until all
// neighbours' data is there; until then send and recv belong to the call. Errors to test for:
// ErrTopology, ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func NeighborAllgatherv[T Element](ctx context.Context, t Topology, send, recv []T, counts, displs []int) error {
	return finishOn(neighborAllgatherv(ctx, t, check(send, recv), counts, displs))
}

// NeighborAlltoall sends the ith block of send to the ith target, and stores what comes from the
// ith source as the ith block of recv; all blocks have the same length (MPI-4.1, Section 8.6.2). It
// blocks until all neighbours' data is there; until then send and recv belong to the call. Errors
// to test for: ErrTopology, ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func NeighborAlltoall[T Element](ctx context.Context, t Topology, send, recv []T) error {
	return finishOn(neighborAlltoall(ctx, t, check(send, recv)))
}

// NeighborAlltoallv is NeighborAlltoall with blocks of scounts[i] elements at sdispls[i] of send,
// and rcounts[i] at rdispls[i] of recv; if displacements are nil blocks follow one another
// (MPI_Neighbor_alltoallv). It blocks until all neighbours' data is there; until then send and recv
// belong to the call. Errors to test for: ErrTopology, ErrCount, ErrOverlap, ErrTypeMismatch,
// [RankError].
func NeighborAlltoallv[T Element](
	ctx context.Context, t Topology, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) error {
	return finishOn(neighborAlltoallv(ctx, t, check(send, recv), scounts, sdispls, rcounts, rdispls))
}

// IneighborAllgather starts [NeighborAllgather] (MPI_Ineighbor_allgather).
func IneighborAllgather[T Element](t Topology, send, recv []T) (*Request, error) {
	return startOn(neighborAllgather(collective.Nonblocking, t, check(send, recv)))
}

// IneighborAllgatherv starts [NeighborAllgatherv] (MPI_Ineighbor_allgatherv).
func IneighborAllgatherv[T Element](t Topology, send, recv []T, counts, displs []int) (*Request, error) {
	return startOn(neighborAllgatherv(collective.Nonblocking, t, check(send, recv), counts, displs))
}

// IneighborAlltoall starts [NeighborAlltoall] (MPI_Ineighbor_alltoall).
func IneighborAlltoall[T Element](t Topology, send, recv []T) (*Request, error) {
	return startOn(neighborAlltoall(collective.Nonblocking, t, check(send, recv)))
}

// IneighborAlltoallv starts [NeighborAlltoallv] (MPI_Ineighbor_alltoallv).
func IneighborAlltoallv[T Element](
	t Topology, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) (*Request, error) {
	return startOn(neighborAlltoallv(collective.Nonblocking, t, check(send, recv), scounts, sdispls, rcounts, rdispls))
}
