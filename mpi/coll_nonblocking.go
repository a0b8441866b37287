package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/collective"
)

func init() {
	bridge.SkipCollective = func(comm any, kind int, blocks bool) {
		ctx := collective.Nonblocking
		if blocks {
			ctx = context.Background()
		}
		comm.(*Comm).coll.Skip(ctx, coll.Kind(kind))
	}
}

// Nonblocking collectives (MPI-4.1, Section 6.12) start the operation of their blocking forms and
// return at once; calls of MPI that wait or test carry it on, and if none does a goroutine, so it makes
// progress independent of the program. So does always one with an operator of the program.
// Buffers must not be touched until the request is done. All ranks must start the collectives of a
// communicator, blocking or not, in the same order; any number may be in progress. Bad arguments
// are returned at once.

// Ibarrier starts [Barrier] (MPI_Ibarrier).
func Ibarrier(c *Comm) (*Request, error) { return c.start(c.coll.Barrier(collective.Nonblocking)) }

// Ibcast starts [Bcast] (MPI_Ibcast).
func Ibcast[T Element](c *Comm, buf []T, root int) (*Request, error) {
	return c.Ibcast(Elements(buf), root)
}

// Ireduce starts [Reduce] (MPI_Ireduce).
func Ireduce[T Element](c *Comm, send, recv []T, op Op[T], root int) (*Request, error) {
	return c.start(c.coll.Reduce(collective.Nonblocking, coll.Reduce, check(send, recv), op.reducer(), root))
}

// Iallreduce starts [Allreduce] (MPI_Iallreduce).
func Iallreduce[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return c.start(c.coll.Reduce(collective.Nonblocking, coll.Allreduce, check(send, recv), op.reducer(), -1))
}

// IreduceScatter starts [ReduceScatter] (MPI_Ireduce_scatter).
func IreduceScatter[T Element](c *Comm, send, recv []T, counts []int, op Op[T]) (*Request, error) {
	return c.start(
		c.coll.ReduceScatter(collective.Nonblocking, coll.ReduceScatter, check(send, recv), counts, op.reducer()))
}

// IreduceScatterBlock starts [ReduceScatterBlock] (MPI_Ireduce_scatter_block).
func IreduceScatterBlock[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return c.start(
		c.coll.ReduceScatter(collective.Nonblocking, coll.ReduceScatterBlock, check(send, recv), nil, op.reducer()))
}

// Iscan starts [Scan] (MPI_Iscan).
func Iscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return c.start(c.coll.Reduce(collective.Nonblocking, coll.Scan, check(send, recv), op.reducer(), -1))
}

// Iexscan starts [Exscan] (MPI_Iexscan).
func Iexscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return c.start(c.coll.Reduce(collective.Nonblocking, coll.Exscan, check(send, recv), op.reducer(), -1))
}

// Igather starts [Gather] (MPI_Igather).
func Igather[T Element](c *Comm, send, recv []T, root int) (*Request, error) {
	return c.Igather(Elements(send), Elements(recv), root)
}

// Igatherv starts [Gatherv] (MPI_Igatherv).
func Igatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	return c.Igatherv(Elements(send), Elements(recv), counts, displs, root)
}

// Iscatter starts [Scatter] (MPI_Iscatter).
func Iscatter[T Element](c *Comm, send, recv []T, root int) (*Request, error) {
	return c.Iscatter(Elements(send), Elements(recv), root)
}

// Iscatterv starts [Scatterv] (MPI_Iscatterv).
func Iscatterv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	return c.Iscatterv(Elements(send), Elements(recv), counts, displs, root)
}

// Iallgather starts [Allgather] (MPI_Iallgather).
func Iallgather[T Element](c *Comm, send, recv []T) (*Request, error) {
	return c.Iallgather(Elements(send), Elements(recv))
}

// Iallgatherv starts [Allgatherv] (MPI_Iallgatherv).
func Iallgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	return c.Iallgatherv(Elements(send), Elements(recv), counts, displs)
}

// Ialltoall starts [Alltoall] (MPI_Ialltoall).
func Ialltoall[T Element](c *Comm, send, recv []T) (*Request, error) {
	return c.Ialltoall(Elements(send), Elements(recv))
}

// Ialltoallv starts [Alltoallv] (MPI_Ialltoallv).
func Ialltoallv[T Element](
	c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) (*Request, error) {
	return c.Ialltoallv(Elements(send), scounts, sdispls, Elements(recv), rcounts, rdispls)
}

// start performs a call that has been made in the background.
func (c *Comm) start(k *collective.Call, err error) (*Request, error) {
	if err != nil {
		return nil, c.raise(err)
	}
	var r *Request
	if c.prof != nil {
		r = c.startRecorded(k)
	} else {
		r = c.inBackground(k)
	}
	r.comm = c
	return r, nil
}

// inBackground starts k, or if its progress cannot be made step by step, performs it on a goroutine of its own.
func (c *Comm) inBackground(k *collective.Call) *Request {
	if k.Recordable() {
		r := newRequest(c.w)
		k.Start(&r.request)
		return r
	}
	return goRequest(c.w, func() (Status, error) { return Status{}, k.InBackground() })
}
