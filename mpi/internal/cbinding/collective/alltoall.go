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
	return alltoall(collCall{proc: "MPI_Alltoall"}, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// Ialltoall is MPI_Ialltoall.
func Ialltoall(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
	request uintptr,
) int {
	return alltoall(collCall{"MPI_Ialltoall", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// AlltoallInit is MPI_Alltoall_init.
func AlltoallInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm, info abi.Handle,
	request uintptr,
) int {
	return alltoall(collCall{"MPI_Alltoall_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

func alltoall(
	k collCall, sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype,
	comm abi.Handle,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := blocksOf(recvbuf, "recvcount", recvcount, c.Peers(), recvtype)
	send := recv
	if err == nil && !mayInPlace(c, sendbuf) {
		send, err = blocksOf(sendbuf, "sendcount", sendcount, c.Peers(), sendtype)
		if err == nil {
			err = aliased(sendbuf, send, sendtype, recvbuf, recv, recvtype)
		}
	}
	if err != nil {
		return c.Done(k.proc, err)
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
		sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, large)
}

// Ialltoallv is MPI_Ialltoallv.
func Ialltoallv(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype,
	comm abi.Handle, request uintptr, large bool,
) int {
	return alltoallv(collCall{"MPI_Ialltoallv", nonblocking, request, 0},
		sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, large)
}

// AlltoallvInit is MPI_Alltoallv_init.
func AlltoallvInit(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype, comm,
	info abi.Handle, request uintptr, large bool,
) int {
	return alltoallv(collCall{"MPI_Alltoallv_init", persistent, request, info},
		sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, large)
}

func alltoallv(
	k collCall, sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype,
	comm abi.Handle, large bool,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := vectorOf(recvbuf, [2]string{"recvcounts", "rdispls"}, recvcounts, rdispls, c.Peers(), recvtype, large)
	send := recv
	if err == nil && !mayInPlace(c, sendbuf) {
		send, err = vectorOf(sendbuf, [2]string{"sendcounts", "sdispls"}, sendcounts, sdispls, c.Peers(), sendtype, large)
		if err == nil && send.at == recv.at && sendtype == recvtype &&
			slices.Equal(send.counts, recv.counts) && slices.Equal(send.displs, recv.displs) && send.Len() > 0 {
			err = aliasError(sendbuf)
		}
	}
	if err != nil {
		return c.Done(k.proc, err)
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
		sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, large)
}

// Ialltoallw is MPI_Ialltoallw.
func Ialltoallw(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm abi.Handle,
	request uintptr, large bool,
) int {
	return alltoallw(collCall{"MPI_Ialltoallw", nonblocking, request, 0},
		sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, large)
}

// AlltoallwInit is MPI_Alltoallw_init.
func AlltoallwInit(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm, info abi.Handle,
	request uintptr, large bool,
) int {
	return alltoallw(collCall{"MPI_Alltoallw_init", persistent, request, info},
		sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, large)
}

func alltoallw(
	k collCall, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm abi.Handle,
	large bool,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := typedBlocks(recvbuf, "recv", recvcounts, rdispls, recvtypes, c.Peers(), large, large)
	send := recv
	if err == nil && !mayInPlace(c, sendbuf) {
		send, err = typedBlocks(sendbuf, "send", sendcounts, sdispls, sendtypes, c.Peers(), large, large)
	}
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.Alltoallw(cbinding.Background, send, recv) },
		func() (*mpi.Request, error) { return c.Ialltoallw(send, recv) },
		func() (*mpi.Persistent, error) { return c.AlltoallwInit(send, recv) })
}
