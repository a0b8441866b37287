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
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

// Iallgather is MPI_Iallgather.
func Iallgather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
	request uintptr,
) int {
	return allgather(collCall{"MPI_Iallgather", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

// AllgatherInit is MPI_Allgather_init.
func AllgatherInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm,
	info abi.Handle, request uintptr,
) int {
	return allgather(collCall{"MPI_Allgather_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

func allgather(k collCall, own, all block, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := all.times("recvcount", c.Peers())
	if err != nil {
		return k.refuse(c, err)
	}
	var send mpi.Buffer
	if c.IsInter() {
		send, err = own.buffer()
	} else {
		send, err = ownBlock(c, own, all, c.Rank()*all.count)
	}
	if err != nil {
		return k.refuse(c, err)
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
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, comm)
}

// Iallgatherv is MPI_Iallgatherv.
func Iallgatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm abi.Handle,
	request uintptr, large bool,
) int {
	return allgatherv(collCall{"MPI_Iallgatherv", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, comm)
}

// AllgathervInit is MPI_Allgatherv_init.
func AllgathervInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype,
	comm, info abi.Handle, request uintptr, large bool,
) int {
	return allgatherv(collCall{"MPI_Allgatherv_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, comm)
}

func allgatherv(k collCall, own block, all blocks, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := all.vector(recvNames, c.Peers())
	if err != nil {
		return k.refuse(c, err)
	}
	var send mpi.Buffer
	if c.IsInter() {
		send, err = own.buffer()
	} else {
		send, err = ownOf(c, own, all, recvNames, recv.counts[c.Rank()])
	}
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Allgatherv(cbinding.Background, send, recv.Buffer, recv.counts, recv.displs) },
		func() (*mpi.Request, error) { return c.Iallgatherv(send, recv.Buffer, recv.counts, recv.displs) },
		func() (*mpi.Persistent, error) { return c.AllgathervInit(send, recv.Buffer, recv.counts, recv.displs) })
}
