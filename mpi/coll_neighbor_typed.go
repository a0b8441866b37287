package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/collective"
)

// NeighborAlltoallw is [NeighborAlltoallv] with a datatype for each neighbour: it sends scounts[i]
// items of stypes[i] that begin sdispls[i] bytes into send to the ith target, and stores what comes
// from the ith source as rcounts[i] items of rtypes[i] at rdispls[i] bytes into recv (MPI-4.1,
// Section 8.6.3). It blocks until all neighbours' data is there; until then send and recv belong to
// the call. Errors to test for: ErrTopology, ErrCount, ErrDatatype, ErrOverlap, ErrTypeMismatch,
// [RankError].
func NeighborAlltoallw[T Element](ctx context.Context, t Topology, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) error {
	out, in := blocksIn(send, scounts, sdispls, stypes), blocksIn(recv, rcounts, rdispls, rtypes)
	return finishOn(neighborAlltoallw(ctx, t, out, in))
}

// IneighborAlltoallw starts [NeighborAlltoallw] (MPI_Ineighbor_alltoallw).
func IneighborAlltoallw[T Element](t Topology, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) (*Request, error) {
	out, in := blocksIn(send, scounts, sdispls, stypes), blocksIn(recv, rcounts, rdispls, rtypes)
	return startOn(neighborAlltoallw(collective.Nonblocking, t, out, in))
}

// NeighborAlltoallw sends the items of send[i] to the ith target, and stores what comes from the ith
// source in those of recv[i], with the topology of c (MPI_Neighbor_alltoallw): each block is a Buffer
// of its own. It blocks until all neighbours' data is there; until then the memory of the Buffers
// belongs to the call. Errors to test for: ErrTopology, ErrCount, ErrDatatype, ErrOverlap,
// ErrTypeMismatch, [RankError].
func (c *Comm) NeighborAlltoallw(ctx context.Context, send, recv []Buffer) error {
	return finishOn(neighborAlltoallw(ctx, c.topology, send, recv))
}

// IneighborAlltoallw starts [Comm.NeighborAlltoallw] (MPI_Ineighbor_alltoallw). The slices of Buffers
// may be used again at once.
func (c *Comm) IneighborAlltoallw(send, recv []Buffer) (*Request, error) {
	return startOn(neighborAlltoallw(collective.Nonblocking, c.topology, send, recv))
}

// NeighborAlltoallwInit prepares [Comm.IneighborAlltoallw] (MPI_Neighbor_alltoallw_init).
func (c *Comm) NeighborAlltoallwInit(send, recv []Buffer) (*Persistent, error) {
	send, recv = cloneBuffers(send, recv)
	return prepare(c, func(c *Comm) (*Request, error) {
		return startOn(neighborAlltoallw(collective.Nonblocking, c.topology, send, recv))
	})
}
