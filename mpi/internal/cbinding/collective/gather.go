package collective

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Gather is MPI_Gather.
func Gather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype abi.Handle, root int,
	comm abi.Handle,
) int {
	return gather(collCall{proc: "MPI_Gather"},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, root, comm)
}

// Igather is MPI_Igather.
func Igather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype abi.Handle, root int,
	comm abi.Handle, request uintptr,
) int {
	return gather(collCall{"MPI_Igather", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, root, comm)
}

// GatherInit is MPI_Gather_init.
func GatherInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm, info abi.Handle, request uintptr,
) int {
	return gather(collCall{"MPI_Gather_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, root, comm)
}

func gather(k collCall, own, all block, root int, comm abi.Handle) int {
	c, r, code := k.rooted(comm, root)
	if c == nil {
		return code
	}
	send, recv, err := own.among(c, all, "recvcount", r)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Gather(cbinding.Background, send, recv, r) },
		func() (*mpi.Request, error) { return c.Igather(send, recv, r) },
		func() (*mpi.Persistent, error) { return c.GatherInit(send, recv, r) })
}

// Gatherv is MPI_Gatherv.
func Gatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr,
	recvtype abi.Handle, root int, comm abi.Handle, large bool,
) int {
	return gatherv(collCall{proc: "MPI_Gatherv"},
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, root, comm)
}

// Igatherv is MPI_Igatherv.
func Igatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr,
	recvtype abi.Handle, root int, comm abi.Handle, request uintptr, large bool,
) int {
	return gatherv(collCall{"MPI_Igatherv", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, root, comm)
}

// GathervInit is MPI_Gatherv_init.
func GathervInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr,
	recvtype abi.Handle, root int, comm, info abi.Handle, request uintptr, large bool,
) int {
	return gatherv(collCall{"MPI_Gatherv_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, root, comm)
}

func gatherv(k collCall, own block, all blocks, root int, comm abi.Handle) int {
	c, r, code := k.rooted(comm, root)
	if c == nil {
		return code
	}
	send, recv, err := own.amongVector(c, all, recvNames, r)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Gatherv(cbinding.Background, send, recv.Buffer, recv.counts, recv.displs, r) },
		func() (*mpi.Request, error) { return c.Igatherv(send, recv.Buffer, recv.counts, recv.displs, r) },
		func() (*mpi.Persistent, error) { return c.GathervInit(send, recv.Buffer, recv.counts, recv.displs, r) })
}
