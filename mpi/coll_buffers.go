package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/collective"
)

// Collectives that move data, of what Buffers describe. Their generic functions say what they do;
// counts and displacements are in items of the Buffer. Gaps, and items outside the blocks, stay as they
// are. The datatypes of the ranks may differ in layout.

// Bcast is the function [Bcast] of what b describes (MPI_Bcast).
func (c *Comm) Bcast(ctx context.Context, b Buffer, root int) error {
	return c.finish(c.coll.Bcast(ctx, checkBuffers(&Buffer{}, &b), root))
}

// Ibcast starts [Comm.Bcast] (MPI_Ibcast).
func (c *Comm) Ibcast(b Buffer, root int) (*Request, error) {
	return c.start(c.coll.Bcast(collective.Nonblocking, checkBuffers(&Buffer{}, &b), root))
}

// BcastInit prepares [Comm.Ibcast] (MPI_Bcast_init).
func (c *Comm) BcastInit(b Buffer, root int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Ibcast(b, root) })
}

// Gather is the function [Gather] of what send and recv describe (MPI_Gather).
func (c *Comm) Gather(ctx context.Context, send, recv Buffer, root int) error {
	return c.finish(c.coll.Gather(ctx, coll.Gather, checkBuffers(&send, &recv), root))
}

// Igather starts [Comm.Gather] (MPI_Igather).
func (c *Comm) Igather(send, recv Buffer, root int) (*Request, error) {
	return c.start(c.coll.Gather(collective.Nonblocking, coll.Gather, checkBuffers(&send, &recv), root))
}

// GatherInit prepares [Comm.Igather] (MPI_Gather_init).
func (c *Comm) GatherInit(send, recv Buffer, root int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Igather(send, recv, root) })
}

// Gatherv is the function [Gatherv] of what send and recv describe (MPI_Gatherv).
func (c *Comm) Gatherv(ctx context.Context, send, recv Buffer, counts, displs []int, root int) error {
	return c.finish(c.coll.Gatherv(ctx, coll.Gatherv, checkBlocked(&send, &recv, false, true), counts, displs, root))
}

// Igatherv starts [Comm.Gatherv] (MPI_Igatherv).
func (c *Comm) Igatherv(send, recv Buffer, counts, displs []int, root int) (*Request, error) {
	b := checkBlocked(&send, &recv, false, true)
	return c.start(c.coll.Gatherv(collective.Nonblocking, coll.Gatherv, b, counts, displs, root))
}

// GathervInit prepares [Comm.Igatherv] (MPI_Gatherv_init).
func (c *Comm) GathervInit(send, recv Buffer, counts, displs []int, root int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Igatherv(send, recv, counts, displs, root) })
}

// Scatter is the function [Scatter] of what send and recv describe (MPI_Scatter).
func (c *Comm) Scatter(ctx context.Context, send, recv Buffer, root int) error {
	return c.finish(c.coll.Gather(ctx, coll.Scatter, checkBuffers(&send, &recv), root))
}

// Iscatter starts [Comm.Scatter] (MPI_Iscatter).
func (c *Comm) Iscatter(send, recv Buffer, root int) (*Request, error) {
	return c.start(c.coll.Gather(collective.Nonblocking, coll.Scatter, checkBuffers(&send, &recv), root))
}

// ScatterInit prepares [Comm.Iscatter] (MPI_Scatter_init).
func (c *Comm) ScatterInit(send, recv Buffer, root int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Iscatter(send, recv, root) })
}

// Scatterv is the function [Scatterv] of what send and recv describe (MPI_Scatterv).
func (c *Comm) Scatterv(ctx context.Context, send, recv Buffer, counts, displs []int, root int) error {
	return c.finish(c.coll.Gatherv(ctx, coll.Scatterv, checkBlocked(&send, &recv, true, false), counts, displs, root))
}

// Iscatterv starts [Comm.Scatterv] (MPI_Iscatterv).
func (c *Comm) Iscatterv(send, recv Buffer, counts, displs []int, root int) (*Request, error) {
	b := checkBlocked(&send, &recv, true, false)
	return c.start(c.coll.Gatherv(collective.Nonblocking, coll.Scatterv, b, counts, displs, root))
}

// ScattervInit prepares [Comm.Iscatterv] (MPI_Scatterv_init).
func (c *Comm) ScattervInit(send, recv Buffer, counts, displs []int, root int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Iscatterv(send, recv, counts, displs, root) })
}

// Allgather is the function [Allgather] of what send and recv describe (MPI_Allgather).
func (c *Comm) Allgather(ctx context.Context, send, recv Buffer) error {
	return c.finish(c.coll.Allgather(ctx, coll.Allgather, checkBuffers(&send, &recv), nil, nil))
}

// Iallgather starts [Comm.Allgather] (MPI_Iallgather).
func (c *Comm) Iallgather(send, recv Buffer) (*Request, error) {
	return c.start(c.coll.Allgather(collective.Nonblocking, coll.Allgather, checkBuffers(&send, &recv), nil, nil))
}

// AllgatherInit prepares [Comm.Iallgather] (MPI_Allgather_init).
func (c *Comm) AllgatherInit(send, recv Buffer) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Iallgather(send, recv) })
}

// Allgatherv is the function [Allgatherv] of what send and recv describe (MPI_Allgatherv).
func (c *Comm) Allgatherv(ctx context.Context, send, recv Buffer, counts, displs []int) error {
	return c.finish(c.coll.Allgather(ctx, coll.Allgatherv, checkBlocked(&send, &recv, false, true), counts, displs))
}

// Iallgatherv starts [Comm.Allgatherv] (MPI_Iallgatherv).
func (c *Comm) Iallgatherv(send, recv Buffer, counts, displs []int) (*Request, error) {
	b := checkBlocked(&send, &recv, false, true)
	return c.start(c.coll.Allgather(collective.Nonblocking, coll.Allgatherv, b, counts, displs))
}

// AllgathervInit prepares [Comm.Iallgatherv] (MPI_Allgatherv_init).
func (c *Comm) AllgathervInit(send, recv Buffer, counts, displs []int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Iallgatherv(send, recv, counts, displs) })
}

// Alltoall is the function [Alltoall] of what send and recv describe (MPI_Alltoall).
func (c *Comm) Alltoall(ctx context.Context, send, recv Buffer) error {
	return c.finish(c.coll.Alltoall(ctx, checkBuffers(&send, &recv)))
}

// Ialltoall starts [Comm.Alltoall] (MPI_Ialltoall).
func (c *Comm) Ialltoall(send, recv Buffer) (*Request, error) {
	return c.start(c.coll.Alltoall(collective.Nonblocking, checkBuffers(&send, &recv)))
}

// AlltoallInit prepares [Comm.Ialltoall] (MPI_Alltoall_init).
func (c *Comm) AlltoallInit(send, recv Buffer) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Ialltoall(send, recv) })
}

// Alltoallv is the function [Alltoallv] of what send and recv describe (MPI_Alltoallv).
func (c *Comm) Alltoallv(
	ctx context.Context, send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int,
) error {
	return c.finish(c.coll.Alltoallv(ctx, checkBlocked(&send, &recv, true, true), scounts, sdispls, rcounts, rdispls))
}

// Ialltoallv starts [Comm.Alltoallv] (MPI_Ialltoallv).
func (c *Comm) Ialltoallv(
	send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int,
) (*Request, error) {
	b := checkBlocked(&send, &recv, true, true)
	return c.start(c.coll.Alltoallv(collective.Nonblocking, b, scounts, sdispls, rcounts, rdispls))
}

// AlltoallvInit prepares [Comm.Ialltoallv] (MPI_Alltoallv_init).
func (c *Comm) AlltoallvInit(
	send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int,
) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) {
		return c.Ialltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	})
}

// NeighborAllgather is the function [NeighborAllgather] of what send and recv describe, with the topology of c
// (MPI_Neighbor_allgather). Without one it returns ErrTopology.
func (c *Comm) NeighborAllgather(ctx context.Context, send, recv Buffer) error {
	return finishOn(neighborAllgather(ctx, c.topology, checkBuffers(&send, &recv)))
}

// IneighborAllgather starts [Comm.NeighborAllgather] (MPI_Ineighbor_allgather).
func (c *Comm) IneighborAllgather(send, recv Buffer) (*Request, error) {
	return startOn(neighborAllgather(collective.Nonblocking, c.topology, checkBuffers(&send, &recv)))
}

// NeighborAllgatherInit prepares [Comm.IneighborAllgather] (MPI_Neighbor_allgather_init).
func (c *Comm) NeighborAllgatherInit(send, recv Buffer) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.IneighborAllgather(send, recv) })
}

// NeighborAllgatherv is the function [NeighborAllgatherv] of what send and recv describe, with the topology of c
// (MPI_Neighbor_allgatherv). Without one it returns ErrTopology.
func (c *Comm) NeighborAllgatherv(ctx context.Context, send, recv Buffer, counts, displs []int) error {
	return finishOn(neighborAllgatherv(ctx, c.topology, checkBlocked(&send, &recv, false, true), counts, displs))
}

// IneighborAllgatherv starts [Comm.NeighborAllgatherv] (MPI_Ineighbor_allgatherv).
func (c *Comm) IneighborAllgatherv(send, recv Buffer, counts, displs []int) (*Request, error) {
	b := checkBlocked(&send, &recv, false, true)
	return startOn(neighborAllgatherv(collective.Nonblocking, c.topology, b, counts, displs))
}

// NeighborAllgathervInit prepares [Comm.IneighborAllgatherv] (MPI_Neighbor_allgatherv_init).
func (c *Comm) NeighborAllgathervInit(send, recv Buffer, counts, displs []int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.IneighborAllgatherv(send, recv, counts, displs) })
}

// NeighborAlltoall is the function [NeighborAlltoall] of what send and recv describe, with the topology of c
// (MPI_Neighbor_alltoall). Without one it returns ErrTopology.
func (c *Comm) NeighborAlltoall(ctx context.Context, send, recv Buffer) error {
	return finishOn(neighborAlltoall(ctx, c.topology, checkBuffers(&send, &recv)))
}

// IneighborAlltoall starts [Comm.NeighborAlltoall] (MPI_Ineighbor_alltoall).
func (c *Comm) IneighborAlltoall(send, recv Buffer) (*Request, error) {
	return startOn(neighborAlltoall(collective.Nonblocking, c.topology, checkBuffers(&send, &recv)))
}

// NeighborAlltoallInit prepares [Comm.IneighborAlltoall] (MPI_Neighbor_alltoall_init).
func (c *Comm) NeighborAlltoallInit(send, recv Buffer) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.IneighborAlltoall(send, recv) })
}

// NeighborAlltoallv is the function [NeighborAlltoallv] of what send and recv describe, with the topology of c
// (MPI_Neighbor_alltoallv). Without one it returns ErrTopology.
func (c *Comm) NeighborAlltoallv(
	ctx context.Context, send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int,
) error {
	b := checkBlocked(&send, &recv, true, true)
	return finishOn(neighborAlltoallv(ctx, c.topology, b, scounts, sdispls, rcounts, rdispls))
}

// IneighborAlltoallv starts [Comm.NeighborAlltoallv] (MPI_Ineighbor_alltoallv).
func (c *Comm) IneighborAlltoallv(
	send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int,
) (*Request, error) {
	b := checkBlocked(&send, &recv, true, true)
	return startOn(neighborAlltoallv(collective.Nonblocking, c.topology, b, scounts, sdispls, rcounts, rdispls))
}

// NeighborAlltoallvInit prepares [Comm.IneighborAlltoallv] (MPI_Neighbor_alltoallv_init).
func (c *Comm) NeighborAlltoallvInit(
	send Buffer, scounts, sdispls []int, recv Buffer, rcounts, rdispls []int,
) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) {
		return c.IneighborAlltoallv(send, scounts, sdispls, recv, rcounts, rdispls)
	})
}
