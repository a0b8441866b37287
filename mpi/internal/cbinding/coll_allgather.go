package cbinding

import "github.com/weftstack/weft/mpi"

// Allgather is MPI_Allgather.
func Allgather(
	sendbuf uintptr, sendcount int, sendtype Handle, recvbuf uintptr, recvcount int, recvtype, comm Handle,
) int {
	return allgather(collCall{proc: "MPI_Allgather"},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// Iallgather is MPI_Iallgather.
func Iallgather(
	sendbuf uintptr, sendcount int, sendtype Handle, recvbuf uintptr, recvcount int, recvtype, comm Handle,
	request uintptr,
) int {
	return allgather(collCall{"MPI_Iallgather", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// AllgatherInit is MPI_Allgather_init.
func AllgatherInit(
	sendbuf uintptr, sendcount int, sendtype Handle, recvbuf uintptr, recvcount int, recvtype, comm, info Handle,
	request uintptr,
) int {
	return allgather(collCall{"MPI_Allgather_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

func allgather(
	k collCall, sendbuf uintptr, sendcount int, sendtype Handle, recvbuf uintptr, recvcount int, recvtype,
	comm Handle,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := blocksOf(recvbuf, "recvcount", recvcount, c.peers(), recvtype)
	if err != nil {
		return c.done(k.proc, err)
	}
	var send mpi.Buffer
	if c.IsInter() {
		send, err = bufferOf(sendbuf, sendcount, sendtype)
	} else {
		send, err = c.ownBlock(sendbuf, sendcount, sendtype, recvbuf, c.Rank()*recvcount, recvcount, recvtype)
	}
	if err != nil {
		return c.done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.Allgather(background, send, recv) },
		func() (*mpi.Request, error) { return c.Iallgather(send, recv) },
		func() (*mpi.Persistent, error) { return c.AllgatherInit(send, recv) })
}

// Allgatherv is MPI_Allgatherv.
func Allgatherv(
	sendbuf uintptr, sendcount int, sendtype Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm Handle,
	large bool,
) int {
	return allgatherv(collCall{proc: "MPI_Allgatherv"},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

// Iallgatherv is MPI_Iallgatherv.
func Iallgatherv(
	sendbuf uintptr, sendcount int, sendtype Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm Handle,
	request uintptr, large bool,
) int {
	return allgatherv(collCall{"MPI_Iallgatherv", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

// AllgathervInit is MPI_Allgatherv_init.
func AllgathervInit(
	sendbuf uintptr, sendcount int, sendtype Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm, info Handle,
	request uintptr, large bool,
) int {
	return allgatherv(collCall{"MPI_Allgatherv_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

func allgatherv(
	k collCall, sendbuf uintptr, sendcount int, sendtype Handle, recvbuf, recvcounts, displs uintptr, recvtype,
	comm Handle, large bool,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	recv, err := vectorOf(recvbuf, recvNames, recvcounts, displs, c.peers(), recvtype, large)
	if err != nil {
		return c.done(k.proc, err)
	}
	var send mpi.Buffer
	if c.IsInter() {
		send, err = bufferOf(sendbuf, sendcount, sendtype)
	} else {
		var at int
		if at, err = intAt(recvNames[1], displs, c.Rank(), large); err == nil {
			send, err = c.ownBlock(sendbuf, sendcount, sendtype, recvbuf, at, recv.counts[c.Rank()], recvtype)
		}
	}
	if err != nil {
		return c.done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.Allgatherv(background, send, recv.Buffer, recv.counts, recv.displs) },
		func() (*mpi.Request, error) { return c.Iallgatherv(send, recv.Buffer, recv.counts, recv.displs) },
		func() (*mpi.Persistent, error) { return c.AllgathervInit(send, recv.Buffer, recv.counts, recv.displs) })
}
