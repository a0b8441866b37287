package collective

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Allgather is MPI_Allgather.
func Allgather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
) int {
	return allgather(collCall{proc: "MPI_Allgather"},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// Iallgather is MPI_Iallgather.
func Iallgather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
	request uintptr,
) int {
	return allgather(collCall{"MPI_Iallgather", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// AllgatherInit is MPI_Allgather_init.
func AllgatherInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm,
	info abi.Handle, request uintptr,
) int {
	return allgather(collCall{"MPI_Allgather_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

func allgather(
	k collCall, sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype,
	comm abi.Handle,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := blocksOf(recvbuf, "recvcount", recvcount, c.Peers(), recvtype)
	if err != nil {
		return c.Done(k.proc, err)
	}
	var send mpi.Buffer
	if c.IsInter() {
		send, err = cbinding.BufferOf(sendbuf, sendcount, sendtype)
	} else {
		send, err = ownBlock(c, sendbuf, sendcount, sendtype, recvbuf, c.Rank()*recvcount, recvcount, recvtype)
	}
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.Allgather(cbinding.Background, send, recv) },
		func() (*mpi.Request, error) { return c.Iallgather(send, recv) },
		func() (*mpi.Persistent, error) { return c.AllgatherInit(send, recv) })
}

// Allgatherv is MPI_Allgatherv.
func Allgatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm abi.Handle,
	large bool,
) int {
	return allgatherv(collCall{proc: "MPI_Allgatherv"},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

// Iallgatherv is MPI_Iallgatherv.
func Iallgatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm abi.Handle,
	request uintptr, large bool,
) int {
	return allgatherv(collCall{"MPI_Iallgatherv", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

// AllgathervInit is MPI_Allgatherv_init.
func AllgathervInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype,
	comm, info abi.Handle, request uintptr, large bool,
) int {
	return allgatherv(collCall{"MPI_Allgatherv_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

func allgatherv(
	k collCall, sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype,
	comm abi.Handle, large bool,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := vectorOf(recvbuf, recvNames, recvcounts, displs, c.Peers(), recvtype, large)
	if err != nil {
		return c.Done(k.proc, err)
	}
	var send mpi.Buffer
	if c.IsInter() {
		send, err = cbinding.BufferOf(sendbuf, sendcount, sendtype)
	} else {
		var at int
		if at, err = intAt(recvNames[1], displs, c.Rank(), large); err == nil {
			send, err = ownBlock(c, sendbuf, sendcount, sendtype, recvbuf, at, recv.counts[c.Rank()], recvtype)
		}
	}
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.Allgatherv(cbinding.Background, send, recv.Buffer, recv.counts, recv.displs) },
		func() (*mpi.Request, error) { return c.Iallgatherv(send, recv.Buffer, recv.counts, recv.displs) },
		func() (*mpi.Persistent, error) { return c.AllgathervInit(send, recv.Buffer, recv.counts, recv.displs) })
}
