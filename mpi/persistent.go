package mpi

import (
	"context"
	"errors"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Persistent is an operation with fixed arguments that can be started again and
// again (MPI-4.1, Sections 3.9 and 6.13), each time after it is done. Bad
// arguments of collectives are found when they are started.
type Persistent struct {
	start func() (*Request, error)
	c     *Comm // of a collective: its own
}

// Start starts the operation (MPI_Start). Buffers must not be touched until the
// request is done.
func (p *Persistent) Start() (*Request, error) {
	if p.start == nil {
		return nil, ErrFreed
	}
	return p.start()
}

// Free gives the operation up (MPI_Request_free). It is local.
func (p *Persistent) Free() {
	if p.c != nil {
		p.c.Free()
	}
	p.start = nil
}

// Startall starts the operations in order (MPI_Startall). If one cannot be
// started it returns the requests of those before it, with the error.
func Startall(ps ...*Persistent) ([]*Request, error) {
	reqs := make([]*Request, 0, len(ps))
	for _, p := range ps {
		r, err := p.Start()
		if err != nil {
			return reqs, err
		}
		reqs = append(reqs, r)
	}
	return reqs, nil
}

// SendInit prepares [Isend] (MPI_Send_init).
func SendInit[T Element](c *Comm, buf []T, dst, tag int) (*Persistent, error) {
	return c.SendInit(Elements(buf), dst, tag)
}

// SendInit prepares [Comm.Isend] (MPI_Send_init).
func (c *Comm) SendInit(b Buffer, dst, tag int) (*Persistent, error) {
	return c.sendInit(c.Isend, b, dst, tag)
}

// SsendInit prepares [Issend] (MPI_Ssend_init).
func SsendInit[T Element](c *Comm, buf []T, dst, tag int) (*Persistent, error) {
	return c.SsendInit(Elements(buf), dst, tag)
}

// SsendInit prepares [Comm.Issend] (MPI_Ssend_init).
func (c *Comm) SsendInit(b Buffer, dst, tag int) (*Persistent, error) {
	return c.sendInit(c.Issend, b, dst, tag)
}

// BsendInit prepares [Ibsend]: the buffer is copied at each start (MPI_Bsend_init).
func BsendInit[T Element](c *Comm, buf []T, dst, tag int) (*Persistent, error) {
	return c.BsendInit(Elements(buf), dst, tag)
}

// BsendInit prepares [Comm.Ibsend] (MPI_Bsend_init).
func (c *Comm) BsendInit(b Buffer, dst, tag int) (*Persistent, error) {
	return c.sendInit(c.Ibsend, b, dst, tag)
}

func (c *Comm) sendInit(start func(Buffer, int, int) (*Request, error), b Buffer, dst, tag int) (*Persistent, error) {
	if err := errors.Join(b.check(tag), checkRank(c, dst)); err != nil {
		return nil, err
	}
	return &Persistent{start: func() (*Request, error) { return start(b, dst, tag) }}, nil
}

// RecvInit prepares [Irecv] (MPI_Recv_init).
func RecvInit[T Element](c *Comm, buf []T, src, tag int) (*Persistent, error) {
	return c.RecvInit(Elements(buf), src, tag)
}

// RecvInit prepares [Comm.Irecv] (MPI_Recv_init).
func (c *Comm) RecvInit(b Buffer, src, tag int) (*Persistent, error) {
	if err := errors.Join(b.err, c.checkRecv(src, tag)); err != nil {
		return nil, err
	}
	if src != AnySource {
		if err := checkRank(c, src); err != nil {
			return nil, err
		}
	}
	return &Persistent{start: func() (*Request, error) { return c.Irecv(b, src, tag) }}, nil
}

func checkRank(c *Comm, rank int) error {
	if rank == ProcNull {
		return c.comm.Usable()
	}
	return c.comm.CheckPeer(p2p.SlotUser, rank)
}

// prepare makes a persistent collective. It has a communicator of its own, so
// that ranks may start their collectives in any order; all ranks of c must
// prepare them in the same order. It does not communicate.
func prepare(c *Comm, start func(c *Comm) (*Request, error)) (*Persistent, error) {
	own, err := c.Dup(context.Background())
	if err != nil {
		return nil, err
	}
	own.SetTuning(c.Tuning())
	return &Persistent{start: func() (*Request, error) { return start(own) }, c: own}, nil
}

// BarrierInit prepares [Ibarrier] (MPI_Barrier_init).
func BarrierInit(c *Comm) (*Persistent, error) {
	return prepare(c, Ibarrier)
}

// BcastInit prepares [Ibcast] (MPI_Bcast_init).
func BcastInit[T Element](c *Comm, buf []T, root int) (*Persistent, error) {
	return c.BcastInit(Elements(buf), root)
}

// ReduceInit prepares [Ireduce] (MPI_Reduce_init).
func ReduceInit[T Element](c *Comm, send, recv []T, op Op[T], root int) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return Ireduce(c, send, recv, op, root) })
}

// AllreduceInit prepares [Iallreduce] (MPI_Allreduce_init).
func AllreduceInit[T Element](c *Comm, send, recv []T, op Op[T]) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return Iallreduce(c, send, recv, op) })
}

// ReduceScatterInit prepares [IreduceScatter] (MPI_Reduce_scatter_init).
func ReduceScatterInit[T Element](c *Comm, send, recv []T, counts []int, op Op[T]) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return IreduceScatter(c, send, recv, counts, op) })
}

// ReduceScatterBlockInit prepares [IreduceScatterBlock]
// (MPI_Reduce_scatter_block_init).
func ReduceScatterBlockInit[T Element](c *Comm, send, recv []T, op Op[T]) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return IreduceScatterBlock(c, send, recv, op) })
}

// ScanInit prepares [Iscan] (MPI_Scan_init).
func ScanInit[T Element](c *Comm, send, recv []T, op Op[T]) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return Iscan(c, send, recv, op) })
}

// ExscanInit prepares [Iexscan] (MPI_Exscan_init).
func ExscanInit[T Element](c *Comm, send, recv []T, op Op[T]) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) { return Iexscan(c, send, recv, op) })
}

// GatherInit prepares [Igather] (MPI_Gather_init).
func GatherInit[T Element](c *Comm, send, recv []T, root int) (*Persistent, error) {
	return c.GatherInit(Elements(send), Elements(recv), root)
}

// GathervInit prepares [Igatherv] (MPI_Gatherv_init).
func GathervInit[T Element](c *Comm, send, recv []T, counts, displs []int, root int) (*Persistent, error) {
	return c.GathervInit(Elements(send), Elements(recv), counts, displs, root)
}

// ScatterInit prepares [Iscatter] (MPI_Scatter_init).
func ScatterInit[T Element](c *Comm, send, recv []T, root int) (*Persistent, error) {
	return c.ScatterInit(Elements(send), Elements(recv), root)
}

// ScattervInit prepares [Iscatterv] (MPI_Scatterv_init).
func ScattervInit[T Element](c *Comm, send, recv []T, counts, displs []int, root int) (*Persistent, error) {
	return c.ScattervInit(Elements(send), Elements(recv), counts, displs, root)
}

// AllgatherInit prepares [Iallgather] (MPI_Allgather_init).
func AllgatherInit[T Element](c *Comm, send, recv []T) (*Persistent, error) {
	return c.AllgatherInit(Elements(send), Elements(recv))
}

// AllgathervInit prepares [Iallgatherv] (MPI_Allgatherv_init).
func AllgathervInit[T Element](c *Comm, send, recv []T, counts, displs []int) (*Persistent, error) {
	return c.AllgathervInit(Elements(send), Elements(recv), counts, displs)
}

// AlltoallInit prepares [Ialltoall] (MPI_Alltoall_init).
func AlltoallInit[T Element](c *Comm, send, recv []T) (*Persistent, error) {
	return c.AlltoallInit(Elements(send), Elements(recv))
}

// AlltoallvInit prepares [Ialltoallv] (MPI_Alltoallv_init).
func AlltoallvInit[T Element](
	c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) (*Persistent, error) {
	return c.AlltoallvInit(Elements(send), scounts, sdispls, Elements(recv), rcounts, rdispls)
}
