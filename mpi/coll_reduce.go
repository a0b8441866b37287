package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/collective"
)

// Reductions of what Buffers describe. Their generic functions say what they do; counts are in items.
// The operator gets whole items of the datatype of the Buffers, which is the same in both and on all
// ranks. send and recv may be the same Buffer.

// Reduce is the function [Reduce] of what send and recv describe (MPI_Reduce). Elsewhere than at the
// root recv is not used.
func (c *Comm) Reduce(ctx context.Context, send, recv Buffer, op ItemOp, root int) error {
	return c.finish(c.reduceItems(ctx, coll.Reduce, &send, &recv, op, root))
}

// Ireduce starts [Comm.Reduce] (MPI_Ireduce).
func (c *Comm) Ireduce(send, recv Buffer, op ItemOp, root int) (*Request, error) {
	return c.start(c.reduceItems(collective.Nonblocking, coll.Reduce, &send, &recv, op, root))
}

// ReduceInit prepares [Comm.Ireduce] (MPI_Reduce_init).
func (c *Comm) ReduceInit(send, recv Buffer, op ItemOp, root int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Ireduce(send, recv, op, root) })
}

// Allreduce is the function [Allreduce] of what send and recv describe (MPI_Allreduce).
func (c *Comm) Allreduce(ctx context.Context, send, recv Buffer, op ItemOp) error {
	return c.finish(c.reduceItems(ctx, coll.Allreduce, &send, &recv, op, -1))
}

// Iallreduce starts [Comm.Allreduce] (MPI_Iallreduce).
func (c *Comm) Iallreduce(send, recv Buffer, op ItemOp) (*Request, error) {
	return c.start(c.reduceItems(collective.Nonblocking, coll.Allreduce, &send, &recv, op, -1))
}

// AllreduceInit prepares [Comm.Iallreduce] (MPI_Allreduce_init).
func (c *Comm) AllreduceInit(send, recv Buffer, op ItemOp) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Iallreduce(send, recv, op) })
}

// Scan is the function [Scan] of what send and recv describe (MPI_Scan).
func (c *Comm) Scan(ctx context.Context, send, recv Buffer, op ItemOp) error {
	return c.finish(c.reduceItems(ctx, coll.Scan, &send, &recv, op, -1))
}

// Iscan starts [Comm.Scan] (MPI_Iscan).
func (c *Comm) Iscan(send, recv Buffer, op ItemOp) (*Request, error) {
	return c.start(c.reduceItems(collective.Nonblocking, coll.Scan, &send, &recv, op, -1))
}

// ScanInit prepares [Comm.Iscan] (MPI_Scan_init).
func (c *Comm) ScanInit(send, recv Buffer, op ItemOp) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Iscan(send, recv, op) })
}

// Exscan is the function [Exscan] of what send and recv describe (MPI_Exscan). At rank 0 recv stays
// as it is.
func (c *Comm) Exscan(ctx context.Context, send, recv Buffer, op ItemOp) error {
	return c.finish(c.reduceItems(ctx, coll.Exscan, &send, &recv, op, -1))
}

// Iexscan starts [Comm.Exscan] (MPI_Iexscan).
func (c *Comm) Iexscan(send, recv Buffer, op ItemOp) (*Request, error) {
	return c.start(c.reduceItems(collective.Nonblocking, coll.Exscan, &send, &recv, op, -1))
}

// ExscanInit prepares [Comm.Iexscan] (MPI_Exscan_init).
func (c *Comm) ExscanInit(send, recv Buffer, op ItemOp) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.Iexscan(send, recv, op) })
}

// ReduceScatter is the function [ReduceScatter] of what send and recv describe (MPI_Reduce_scatter).
func (c *Comm) ReduceScatter(ctx context.Context, send, recv Buffer, counts []int, op ItemOp) error {
	b := op.check(&send, &recv, coll.ReduceScatter)
	return c.finish(c.coll.ReduceScatter(ctx, coll.ReduceScatter, b, counts, b.Red))
}

// IreduceScatter starts [Comm.ReduceScatter] (MPI_Ireduce_scatter).
func (c *Comm) IreduceScatter(send, recv Buffer, counts []int, op ItemOp) (*Request, error) {
	b := op.check(&send, &recv, coll.ReduceScatter)
	return c.start(c.coll.ReduceScatter(collective.Nonblocking, coll.ReduceScatter, b, counts, b.Red))
}

// ReduceScatterInit prepares [Comm.IreduceScatter] (MPI_Reduce_scatter_init).
func (c *Comm) ReduceScatterInit(send, recv Buffer, counts []int, op ItemOp) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.IreduceScatter(send, recv, counts, op) })
}

// ReduceScatterBlock is the function [ReduceScatterBlock] of what send and recv describe
// (MPI_Reduce_scatter_block).
func (c *Comm) ReduceScatterBlock(ctx context.Context, send, recv Buffer, op ItemOp) error {
	b := op.check(&send, &recv, coll.ReduceScatterBlock)
	return c.finish(c.coll.ReduceScatter(ctx, coll.ReduceScatterBlock, b, nil, b.Red))
}

// IreduceScatterBlock starts [Comm.ReduceScatterBlock] (MPI_Ireduce_scatter_block).
func (c *Comm) IreduceScatterBlock(send, recv Buffer, op ItemOp) (*Request, error) {
	b := op.check(&send, &recv, coll.ReduceScatterBlock)
	return c.start(c.coll.ReduceScatter(collective.Nonblocking, coll.ReduceScatterBlock, b, nil, b.Red))
}

// ReduceScatterBlockInit prepares [Comm.IreduceScatterBlock] (MPI_Reduce_scatter_block_init).
func (c *Comm) ReduceScatterBlockInit(send, recv Buffer, op ItemOp) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return c.IreduceScatterBlock(send, recv, op) })
}

// reduceItems is reduceCall of what send and recv describe.
func (c *Comm) reduceItems(
	ctx context.Context, kind coll.Kind, send, recv *Buffer, op ItemOp, root int,
) (*collective.Call, error) {
	if kind == coll.Reduce { // buffers that are not significant are not looked at
		if !c.isRoot(root) {
			recv = &Buffer{}
		}
		if c.remote != nil && (root == Root || root == ProcNull) {
			send = &Buffer{}
		}
	}
	b := op.check(send, recv, kind)
	return c.coll.Reduce(ctx, kind, b, b.Red, root)
}

// isRoot reports whether the caller is the root.
func (c *Comm) isRoot(root int) bool {
	if c.remote != nil {
		return root == Root
	}
	return c.comm.Rank == root
}
