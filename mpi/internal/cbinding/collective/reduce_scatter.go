package collective

import (
	"fmt"
	"math"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// ReduceScatter is MPI_Reduce_scatter.
func ReduceScatter(sendbuf, recvbuf, recvcounts uintptr, datatype, op, comm abi.Handle, large bool) int {
	return reduceScatter(collCall{proc: "MPI_Reduce_scatter"},
		sendbuf, recvbuf, recvcounts, datatype, op, comm, large)
}

// IreduceScatter is MPI_Ireduce_scatter.
func IreduceScatter(
	sendbuf, recvbuf, recvcounts uintptr, datatype, op, comm abi.Handle, request uintptr, large bool,
) int {
	return reduceScatter(collCall{"MPI_Ireduce_scatter", nonblocking, request, 0},
		sendbuf, recvbuf, recvcounts, datatype, op, comm, large)
}

// ReduceScatterInit is MPI_Reduce_scatter_init.
func ReduceScatterInit(
	sendbuf, recvbuf, recvcounts uintptr, datatype, op, comm, info abi.Handle, request uintptr, large bool,
) int {
	return reduceScatter(collCall{"MPI_Reduce_scatter_init", persistent, request, info},
		sendbuf, recvbuf, recvcounts, datatype, op, comm, large)
}

func reduceScatter(k collCall, sendbuf, recvbuf, recvcounts uintptr, datatype, op, comm abi.Handle, large bool) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	counts, err := cbinding.Ints("recvcounts", recvcounts, c.Size(), large)
	all := 0
	for i := 0; i < len(counts) && err == nil; i++ {
		if counts[i] < 0 || counts[i] > math.MaxInt-all {
			err = cbinding.ArgError(abi.ErrCount, fmt.Sprintf("recvcounts[%d]", i), counts[i], "is negative, or too much")
		}
		all += counts[i]
	}
	if err != nil {
		return k.refuse(c, err)
	}
	send, recv, o, err := reduceBuffers(c, sendbuf, recvbuf, all, counts[c.Rank()], datatype, op)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.ReduceScatter(cbinding.Background, send, recv, counts, o) },
		func() (*mpi.Request, error) { return c.IreduceScatter(send, recv, counts, o) },
		func() (*mpi.Persistent, error) { return c.ReduceScatterInit(send, recv, counts, o) })
}

// ReduceScatterBlock is MPI_Reduce_scatter_block.
func ReduceScatterBlock(sendbuf, recvbuf uintptr, recvcount int, datatype, op, comm abi.Handle) int {
	return reduceScatterBlock(collCall{proc: "MPI_Reduce_scatter_block"},
		sendbuf, recvbuf, recvcount, datatype, op, comm)
}

// IreduceScatterBlock is MPI_Ireduce_scatter_block.
func IreduceScatterBlock(sendbuf, recvbuf uintptr, recvcount int, datatype, op, comm abi.Handle, request uintptr) int {
	return reduceScatterBlock(collCall{"MPI_Ireduce_scatter_block", nonblocking, request, 0},
		sendbuf, recvbuf, recvcount, datatype, op, comm)
}

// ReduceScatterBlockInit is MPI_Reduce_scatter_block_init.
func ReduceScatterBlockInit(
	sendbuf, recvbuf uintptr, recvcount int, datatype, op, comm, info abi.Handle, request uintptr,
) int {
	return reduceScatterBlock(collCall{"MPI_Reduce_scatter_block_init", persistent, request, info},
		sendbuf, recvbuf, recvcount, datatype, op, comm)
}

func reduceScatterBlock(k collCall, sendbuf, recvbuf uintptr, recvcount int, datatype, op, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	all, err := times("recvcount", recvcount, c.Size())
	if err != nil {
		return k.refuse(c, err)
	}
	send, recv, o, err := reduceBuffers(c, sendbuf, recvbuf, all, recvcount, datatype, op)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.ReduceScatterBlock(cbinding.Background, send, recv, o) },
		func() (*mpi.Request, error) { return c.IreduceScatterBlock(send, recv, o) },
		func() (*mpi.Persistent, error) { return c.ReduceScatterBlockInit(send, recv, o) })
}
