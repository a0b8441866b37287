package collective

import (
	"context"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Reduce is MPI_Reduce.
func Reduce(sendbuf, recvbuf uintptr, count int, datatype, op abi.Handle, root int, comm abi.Handle) int {
	return reduce(collCall{proc: "MPI_Reduce"}, sendbuf, recvbuf, count, datatype, op, root, comm)
}

// Ireduce is MPI_Ireduce.
func Ireduce(
	sendbuf, recvbuf uintptr, count int, datatype, op abi.Handle, root int, comm abi.Handle, request uintptr,
) int {
	return reduce(collCall{"MPI_Ireduce", nonblocking, request, 0}, sendbuf, recvbuf, count, datatype, op, root, comm)
}

// ReduceInit is MPI_Reduce_init.
func ReduceInit(
	sendbuf, recvbuf uintptr, count int, datatype, op abi.Handle, root int, comm, info abi.Handle, request uintptr,
) int {
	return reduce(collCall{"MPI_Reduce_init", persistent, request, info},
		sendbuf, recvbuf, count, datatype, op, root, comm)
}

func reduce(
	k collCall, sendbuf, recvbuf uintptr, count int, datatype, op abi.Handle, root int, comm abi.Handle,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	at, err := c.Root(root)
	var send, recv mpi.Buffer
	if err == nil && collects(c, at) {
		recv, err = cbinding.BufferOf(recvbuf, count, datatype)
	}
	if send = recv; err == nil && (at >= 0 || !c.IsInter()) && !(collects(c, at) && mayInPlace(c, sendbuf)) {
		send, err = cbinding.BufferOf(sendbuf, count, datatype)
		if err == nil {
			err = aliased(block{sendbuf, count, datatype}, block{recvbuf, count, datatype}, send, recv)
		}
	}
	if err != nil {
		return k.refuse(c, err)
	}
	o, err := reduceOp(op, datatype)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Reduce(cbinding.Background, send, recv, o, at) },
		func() (*mpi.Request, error) { return c.Ireduce(send, recv, o, at) },
		func() (*mpi.Persistent, error) { return c.ReduceInit(send, recv, o, at) })
}

// A reduction is the three forms of a reduction of which every rank gets a result.
type reduction struct {
	run     func(c *mpi.Comm, ctx context.Context, send, recv mpi.Buffer, op mpi.ItemOp) error
	start   func(c *mpi.Comm, send, recv mpi.Buffer, op mpi.ItemOp) (*mpi.Request, error)
	prepare func(c *mpi.Comm, send, recv mpi.Buffer, op mpi.ItemOp) (*mpi.Persistent, error)
}

func (f reduction) call(k collCall, sendbuf, recvbuf uintptr, count int, datatype, op, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	send, recv, o, err := reduceBuffers(c, sendbuf, recvbuf, count, count, datatype, op)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return f.run(c.Comm, cbinding.Background, send, recv, o) },
		func() (*mpi.Request, error) { return f.start(c.Comm, send, recv, o) },
		func() (*mpi.Persistent, error) { return f.prepare(c.Comm, send, recv, o) })
}

// Allreduce is MPI_Allreduce.
func Allreduce(sendbuf, recvbuf uintptr, count int, datatype, op, comm abi.Handle) int {
	return allreduce.call(collCall{proc: "MPI_Allreduce"}, sendbuf, recvbuf, count, datatype, op, comm)
}

// Iallreduce is MPI_Iallreduce.
func Iallreduce(sendbuf, recvbuf uintptr, count int, datatype, op, comm abi.Handle, request uintptr) int {
	return allreduce.call(collCall{"MPI_Iallreduce", nonblocking, request, 0}, sendbuf, recvbuf, count, datatype, op, comm)
}

// AllreduceInit is MPI_Allreduce_init.
func AllreduceInit(sendbuf, recvbuf uintptr, count int, datatype, op, comm, info abi.Handle, request uintptr) int {
	return allreduce.call(collCall{"MPI_Allreduce_init", persistent, request, info},
		sendbuf, recvbuf, count, datatype, op, comm)
}

var allreduce = reduction{(*mpi.Comm).Allreduce, (*mpi.Comm).Iallreduce, (*mpi.Comm).AllreduceInit}

// Scan is MPI_Scan.
func Scan(sendbuf, recvbuf uintptr, count int, datatype, op, comm abi.Handle) int {
	return scan.call(collCall{proc: "MPI_Scan"}, sendbuf, recvbuf, count, datatype, op, comm)
}

// Iscan is MPI_Iscan.
func Iscan(sendbuf, recvbuf uintptr, count int, datatype, op, comm abi.Handle, request uintptr) int {
	return scan.call(collCall{"MPI_Iscan", nonblocking, request, 0}, sendbuf, recvbuf, count, datatype, op, comm)
}

// ScanInit is MPI_Scan_init.
func ScanInit(sendbuf, recvbuf uintptr, count int, datatype, op, comm, info abi.Handle, request uintptr) int {
	return scan.call(collCall{"MPI_Scan_init", persistent, request, info}, sendbuf, recvbuf, count, datatype, op, comm)
}

var scan = reduction{(*mpi.Comm).Scan, (*mpi.Comm).Iscan, (*mpi.Comm).ScanInit}

// Exscan is MPI_Exscan.
func Exscan(sendbuf, recvbuf uintptr, count int, datatype, op, comm abi.Handle) int {
	return exscan.call(collCall{proc: "MPI_Exscan"}, sendbuf, recvbuf, count, datatype, op, comm)
}

// Iexscan is MPI_Iexscan.
func Iexscan(sendbuf, recvbuf uintptr, count int, datatype, op, comm abi.Handle, request uintptr) int {
	return exscan.call(collCall{"MPI_Iexscan", nonblocking, request, 0}, sendbuf, recvbuf, count, datatype, op, comm)
}

// ExscanInit is MPI_Exscan_init.
func ExscanInit(sendbuf, recvbuf uintptr, count int, datatype, op, comm, info abi.Handle, request uintptr) int {
	return exscan.call(collCall{"MPI_Exscan_init", persistent, request, info}, sendbuf, recvbuf, count, datatype, op, comm)
}

var exscan = reduction{(*mpi.Comm).Exscan, (*mpi.Comm).Iexscan, (*mpi.Comm).ExscanInit}

// reduceBuffers returns the buffers and the operator of a reduction of which every rank gets a result: it
// sends count items and receives n.
func reduceBuffers(c *cbinding.Communicator,
	sendbuf, recvbuf uintptr, count, n int, datatype, h abi.Handle,
) (send, recv mpi.Buffer, o mpi.ItemOp, err error) {
	if recv, err = cbinding.BufferOf(recvbuf, n, datatype); err != nil {
		return send, recv, o, err
	}
	if mayInPlace(c, sendbuf) {
		send, err = cbinding.BufferOf(recvbuf, count, datatype)
	} else if send, err = cbinding.BufferOf(sendbuf, count, datatype); err == nil && sendbuf == recvbuf && recv.Len() > 0 {
		err = aliasError(sendbuf)
	}
	if err == nil {
		o, err = reduceOp(h, datatype)
	}
	return send, recv, o, err
}
