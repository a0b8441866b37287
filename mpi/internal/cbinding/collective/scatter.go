package collective

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Scatter is MPI_Scatter.
func Scatter(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype abi.Handle, root int,
	comm abi.Handle,
) int {
	return scatter(collCall{proc: "MPI_Scatter"},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, root, comm)
}

// Iscatter is MPI_Iscatter.
func Iscatter(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype abi.Handle, root int,
	comm abi.Handle, request uintptr,
) int {
	return scatter(collCall{"MPI_Iscatter", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, root, comm)
}

// ScatterInit is MPI_Scatter_init.
func ScatterInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm, info abi.Handle, request uintptr,
) int {
	return scatter(collCall{"MPI_Scatter_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, root, comm)
}

func scatter(k collCall, all, own block, root int, comm abi.Handle) int {
	c, r, code := k.rooted(comm, root)
	if c == nil {
		return code
	}
	recv, send, err := own.among(c, all, "sendcount", r)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Scatter(cbinding.Background, send, recv, r) },
		func() (*mpi.Request, error) { return c.Iscatter(send, recv, r) },
		func() (*mpi.Persistent, error) { return c.ScatterInit(send, recv, r) })
}

// Scatterv is MPI_Scatterv.
func Scatterv(
	sendbuf, sendcounts, displs uintptr, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm abi.Handle, large bool,
) int {
	return scatterv(collCall{proc: "MPI_Scatterv"},
		blocks{sendbuf, sendcounts, displs, sendtype, large}, block{recvbuf, recvcount, recvtype}, root, comm)
}

// Iscatterv is MPI_Iscatterv.
func Iscatterv(
	sendbuf, sendcounts, displs uintptr, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm abi.Handle, request uintptr, large bool,
) int {
	return scatterv(collCall{"MPI_Iscatterv", nonblocking, request, 0},
		blocks{sendbuf, sendcounts, displs, sendtype, large}, block{recvbuf, recvcount, recvtype}, root, comm)
}

// ScattervInit is MPI_Scatterv_init.
func ScattervInit(
	sendbuf, sendcounts, displs uintptr, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm, info abi.Handle, request uintptr, large bool,
) int {
	return scatterv(collCall{"MPI_Scatterv_init", persistent, request, info},
		blocks{sendbuf, sendcounts, displs, sendtype, large}, block{recvbuf, recvcount, recvtype}, root, comm)
}

func scatterv(k collCall, all blocks, own block, root int, comm abi.Handle) int {
	c, r, code := k.rooted(comm, root)
	if c == nil {
		return code
	}
	recv, send, err := own.amongVector(c, all, sendNames, r)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Scatterv(cbinding.Background, send.Buffer, recv, send.counts, send.displs, r) },
		func() (*mpi.Request, error) { return c.Iscatterv(send.Buffer, recv, send.counts, send.displs, r) },
		func() (*mpi.Persistent, error) { return c.ScattervInit(send.Buffer, recv, send.counts, send.displs, r) })
}
