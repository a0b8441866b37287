package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/collective"
	"github.com/weftstack/weft/mpi/internal/op"
)

// Barrier blocks until all ranks of c have called it (MPI-4.1, Section 6.3). Errors to test for:
// [RankError].
func Barrier(ctx context.Context, c *Comm) error {
	return c.finish(c.coll.Barrier(ctx))
}

// Bcast copies buf of the root to buf of all ranks; buffers must have the same length everywhere
// (MPI-4.1, Section 6.4). It blocks until the caller's part is done: at the root when buf may be
// changed again, elsewhere when it is filled. Errors to test for: ErrRoot, ErrCount,
// ErrTypeMismatch, [RankError].
func Bcast[T Element](ctx context.Context, c *Comm, buf []T, root int) error {
	return c.Bcast(ctx, Elements(buf), root)
}

// Reduce combines the elements at the same place of all send buffers and stores the result in recv
// of the root; elsewhere recv is not used (MPI_Reduce; MPI-4.1, Section 6.9.1). At the root, send
// and recv may be the same slice. It blocks until the caller's part is done; until then send and
// recv belong to the call. Errors to test for: ErrRoot, ErrCount, ErrOp, ErrOverlap,
// ErrTypeMismatch, [RankError].
func Reduce[T Element](ctx context.Context, c *Comm, send, recv []T, op Op[T], root int) error {
	return c.finish(c.coll.Reduce(ctx, coll.Reduce, check(send, recv), op.reducer(), root))
}

// Allreduce is [Reduce] with the result in recv of all ranks, bit by bit the same (MPI-4.1, Section
// 6.9.6). send and recv may be the same slice. It blocks until the result is there; until then send
// and recv belong to the call. Errors to test for: ErrCount, ErrOp, ErrOverlap, ErrTypeMismatch,
// [RankError].
func Allreduce[T Element](ctx context.Context, c *Comm, send, recv []T, op Op[T]) error {
	return c.finish(c.coll.Reduce(ctx, coll.Allreduce, check(send, recv), op.reducer(), -1))
}

// ReduceScatter is [Reduce] after which rank i gets the ith block of the result, counts[i] elements
// long, in recv (MPI-4.1, Section 6.10.2). counts must be the same on all ranks. recv may be the
// beginning of send. It blocks until the result is there; until then send and recv belong to the
// call. Errors to test for: ErrCount, ErrOp, ErrOverlap, ErrTypeMismatch, [RankError].
func ReduceScatter[T Element](ctx context.Context, c *Comm, send, recv []T, counts []int, op Op[T]) error {
	return c.finish(c.coll.ReduceScatter(ctx, coll.ReduceScatter, check(send, recv), counts, op.reducer()))
}

// ReduceScatterBlock is [ReduceScatter] with blocks of the same length, that of recv (MPI-4.1,
// Section 6.10.1). It blocks until the result is there; until then send and recv belong to the
// call. Errors to test for: ErrCount, ErrOp, ErrOverlap, ErrTypeMismatch, [RankError].
func ReduceScatterBlock[T Element](ctx context.Context, c *Comm, send, recv []T, op Op[T]) error {
	return c.finish(c.coll.ReduceScatter(ctx, coll.ReduceScatterBlock, check(send, recv), nil, op.reducer()))
}

// Scan combines the send buffers of ranks 0 to i and stores the result in recv of rank i (MPI-4.1,
// Section 6.11.1). send and recv may be the same slice. It blocks until the result is there; until
// then send and recv belong to the call. Errors to test for: ErrCount, ErrOp, ErrOverlap,
// ErrTypeMismatch, [RankError].
func Scan[T Element](ctx context.Context, c *Comm, send, recv []T, op Op[T]) error {
	return c.finish(c.coll.Reduce(ctx, coll.Scan, check(send, recv), op.reducer(), -1))
}

// Exscan is [Scan] without the rank's own operand: rank i gets the result of ranks 0 to i-1; recv
// of rank 0 is not changed (MPI-4.1, Section 6.11.2). It blocks until the result is there; until
// then send and recv belong to the call. Errors to test for: ErrCount, ErrOp, ErrOverlap,
// ErrTypeMismatch, [RankError].
func Exscan[T Element](ctx context.Context, c *Comm, send, recv []T, op Op[T]) error {
	return c.finish(c.coll.Reduce(ctx, coll.Exscan, check(send, recv), op.reducer(), -1))
}

// Gather stores send of rank i as the ith block of recv at the root; elsewhere recv is not used.
// All send buffers have the same length (MPI-4.1, Section 6.5). The root's send may be its block in
// recv. It blocks until the caller's part is done; until then send and recv belong to the call.
// Errors to test for: ErrRoot, ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func Gather[T Element](ctx context.Context, c *Comm, send, recv []T, root int) error {
	return c.Gather(ctx, Elements(send), Elements(recv), root)
}

// Gatherv is [Gather] with blocks of counts[i] elements at displs[i] of recv; if displs is nil they
// follow one another (MPI_Gatherv). Both are used at the root only. It blocks until the caller's
// part is done; until then send and recv belong to the call. Errors to test for: ErrRoot, ErrCount,
// ErrOverlap, ErrTypeMismatch, [RankError].
func Gatherv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, root int) error {
	return c.Gatherv(ctx, Elements(send), Elements(recv), counts, displs, root)
}

// Scatter stores the ith block of the root's send in recv of rank i; elsewhere send is not used.
// All recv buffers have the same length (MPI-4.1, Section 6.6). The root's recv may be its block in
// send. It blocks until the caller's part is done; until then send and recv belong to the call.
// Errors to test for: ErrRoot, ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func Scatter[T Element](ctx context.Context, c *Comm, send, recv []T, root int) error {
	return c.Scatter(ctx, Elements(send), Elements(recv), root)
}

// Scatterv is [Scatter] with blocks of counts[i] elements at displs[i] of send; if displs is nil
// they follow one another (MPI_Scatterv). Both are used at the root only. It blocks until the
// caller's part is done; until then send and recv belong to the call. Errors to test for: ErrRoot,
// ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func Scatterv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, root int) error {
	return c.Scatterv(ctx, Elements(send), Elements(recv), counts, displs, root)
}

// Allgather stores send of rank i as the ith block of recv on all ranks (MPI-4.1, Section 6.7).
// send may be the rank's own block in recv. It blocks until all data is there; until then send and
// recv belong to the call. Errors to test for: ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func Allgather[T Element](ctx context.Context, c *Comm, send, recv []T) error {
	return c.Allgather(ctx, Elements(send), Elements(recv))
}

// Allgatherv is [Allgather] with blocks of counts[i] elements at displs[i] of recv; if displs is
// nil they follow one another. counts must be the same on all ranks (MPI_Allgatherv). It blocks
// until all data is there; until then send and recv belong to the call. Errors to test for:
// ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func Allgatherv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int) error {
	return c.Allgatherv(ctx, Elements(send), Elements(recv), counts, displs)
}

// Alltoall sends the ith block of send to rank i and stores what comes from rank i as the ith block
// of recv; all blocks have the same length (MPI-4.1, Section 6.8). send and recv may be the same
// slice (MPI_Alltoall). It blocks until all data is there; until then send and recv belong to the
// call. Errors to test for: ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func Alltoall[T Element](ctx context.Context, c *Comm, send, recv []T) error {
	return c.Alltoall(ctx, Elements(send), Elements(recv))
}

// Alltoallv is [Alltoall] with blocks of scounts[i] elements at sdispls[i] of send, and rcounts[i]
// at rdispls[i] of recv; if displacements are nil blocks follow one another (MPI_Alltoallv). What
// rank i sends to rank j must be as long as what j expects from i. It blocks until all data is
// there; until then send and recv belong to the call. Errors to test for: ErrCount, ErrOverlap,
// ErrTypeMismatch, [RankError].
func Alltoallv[T Element](
	ctx context.Context, c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) error {
	return c.Alltoallv(ctx, Elements(send), scounts, sdispls, Elements(recv), rcounts, rdispls)
}

// finish performs a call that has been made.
func (c *Comm) finish(k *collective.Call, err error) error {
	if err != nil {
		return c.raise(err)
	}
	if c.prof != nil {
		return c.raise(c.finishRecorded(k))
	}
	return c.raise(k.End())
}

// reducer returns the operator on elements as bytes, or nil.
func (o Op[T]) reducer() op.Reducer {
	if o == nil {
		return nil
	}
	if operator := o(); operator != nil {
		return operator.reducer()
	}
	return nil
}
