package collective

import (
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Alltoall is MPI_Alltoall.
func Alltoall(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
) int {
	return alltoall(collCall{proc: "MPI_Alltoall"},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

// Ialltoall is MPI_Ialltoall.
func Ialltoall(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
	request uintptr,
) int {
	return alltoall(collCall{"MPI_Ialltoall", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

// AlltoallInit is MPI_Alltoall_init.
func AlltoallInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm, info abi.Handle,
	request uintptr,
) int {
	return alltoall(collCall{"MPI_Alltoall_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

func alltoall(k collCall, sent, received block, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := received.times("recvcount", c.Peers())
	send := recv
	if err == nil && !mayInPlace(c, sent.buf) {
		send, err = sent.times("sendcount", c.Peers())
		if err == nil {
			err = aliased(sent, received, send, recv)
		}
	}
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Alltoall(cbinding.Background, send, recv) },
		func() (*mpi.Request, error) { return c.Ialltoall(send, recv) },
		func() (*mpi.Persistent, error) { return c.AlltoallInit(send, recv) })
}

// Alltoallv is MPI_Alltoallv.
func Alltoallv(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype,
	comm abi.Handle, large bool,
) int {
	return alltoallv(collCall{proc: "MPI_Alltoallv"},
		blocks{sendbuf, sendcounts, sdispls, sendtype, large}, blocks{recvbuf, recvcounts, rdispls, recvtype, large}, comm)
}

// Ialltoallv is MPI_Ialltoallv.
func Ialltoallv(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype,
	comm abi.Handle, request uintptr, large bool,
) int {
	return alltoallv(collCall{"MPI_Ialltoallv", nonblocking, request, 0},
		blocks{sendbuf, sendcounts, sdispls, sendtype, large}, blocks{recvbuf, recvcounts, rdispls, recvtype, large}, comm)
}

// AlltoallvInit is MPI_Alltoallv_init.
func AlltoallvInit(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype, comm,
	info abi.Handle, request uintptr, large bool,
) int {
	return alltoallv(collCall{"MPI_Alltoallv_init", persistent, request, info},
		blocks{sendbuf, sendcounts, sdispls, sendtype, large}, blocks{recvbuf, recvcounts, rdispls, recvtype, large}, comm)
}

func alltoallv(k collCall, sent, received blocks, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := received.vector(toRecvNames, c.Peers())
	send := recv
	if err == nil && !mayInPlace(c, sent.buf) {
		send, err = sent.vector(toSendNames, c.Peers())
		if err == nil && send.at == recv.at && sent.datatype == received.datatype &&
			slices.Equal(send.counts, recv.counts) && slices.Equal(send.displs, recv.displs) && send.Len() > 0 {
			err = aliasError(sent.buf)
		}
	}
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error {
			return c.Alltoallv(cbinding.Background, send.Buffer, send.counts, send.displs, recv.Buffer, recv.counts, recv.displs)
		},
		func() (*mpi.Request, error) {
			return c.Ialltoallv(send.Buffer, send.counts, send.displs, recv.Buffer, recv.counts, recv.displs)
		},
		func() (*mpi.Persistent, error) {
			return c.AlltoallvInit(send.Buffer, send.counts, send.displs, recv.Buffer, recv.counts, recv.displs)
		})
}

// Alltoallw is MPI_Alltoallw.
func Alltoallw(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm abi.Handle, large bool,
) int {
	return alltoallw(collCall{proc: "MPI_Alltoallw"},
		typedBlocks{sendbuf, sendcounts, sdispls, sendtypes, large},
		typedBlocks{recvbuf, recvcounts, rdispls, recvtypes, large}, comm)
}

// Ialltoallw is MPI_Ialltoallw.
func Ialltoallw(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm abi.Handle,
	request uintptr, large bool,
) int {
	return alltoallw(collCall{"MPI_Ialltoallw", nonblocking, request, 0},
		typedBlocks{sendbuf, sendcounts, sdispls, sendtypes, large},
		typedBlocks{recvbuf, recvcounts, rdispls, recvtypes, large}, comm)
}

// AlltoallwInit is MPI_Alltoallw_init.
func AlltoallwInit(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm, info abi.Handle,
	request uintptr, large bool,
) int {
	return alltoallw(collCall{"MPI_Alltoallw_init", persistent, request, info},
		typedBlocks{sendbuf, sendcounts, sdispls, sendtypes, large},
		typedBlocks{recvbuf, recvcounts, rdispls, recvtypes, large}, comm)
}

func alltoallw(k collCall, sent, received typedBlocks, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := received.buffers("recv", c.Peers(), received.large)
	send := recv
	if err == nil && !mayInPlace(c, sent.buf) {
		send, err = sent.buffers("send", c.Peers(), sent.large)
	}
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Alltoallw(cbinding.Background, send, recv) },
		func() (*mpi.Request, error) { return c.Ialltoallw(send, recv) },
		func() (*mpi.Persistent, error) { return c.AlltoallwInit(send, recv) })
}
