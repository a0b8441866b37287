package collective

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// NeighborAllgather is MPI_Neighbor_allgather.
func NeighborAllgather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
) int {
	return neighborAllgather(collCall{proc: "MPI_Neighbor_allgather"},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// IneighborAllgather is MPI_Ineighbor_allgather.
func IneighborAllgather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
	request uintptr,
) int {
	return neighborAllgather(collCall{"MPI_Ineighbor_allgather", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// NeighborAllgatherInit is MPI_Neighbor_allgather_init.
func NeighborAllgatherInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm,
	info abi.Handle, request uintptr,
) int {
	return neighborAllgather(collCall{"MPI_Neighbor_allgather_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

func neighborAllgather(
	k collCall, sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype,
	comm abi.Handle,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	sources, _, err := neighbors(c)
	if err != nil {
		return c.Done(k.proc, err)
	}
	send, err := cbinding.BufferOf(sendbuf, sendcount, sendtype)
	if err != nil {
		return c.Done(k.proc, err)
	}
	recv, err := blocksOf(recvbuf, "recvcount", recvcount, sources, recvtype)
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.NeighborAllgather(cbinding.Background, send, recv) },
		func() (*mpi.Request, error) { return c.IneighborAllgather(send, recv) },
		func() (*mpi.Persistent, error) { return c.NeighborAllgatherInit(send, recv) })
}

// NeighborAllgatherv is MPI_Neighbor_allgatherv.
func NeighborAllgatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm abi.Handle,
	large bool,
) int {
	return neighborAllgatherv(collCall{proc: "MPI_Neighbor_allgatherv"},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

// IneighborAllgatherv is MPI_Ineighbor_allgatherv.
func IneighborAllgatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm abi.Handle,
	request uintptr, large bool,
) int {
	return neighborAllgatherv(collCall{"MPI_Ineighbor_allgatherv", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

// NeighborAllgathervInit is MPI_Neighbor_allgatherv_init.
func NeighborAllgathervInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype,
	comm, info abi.Handle, request uintptr, large bool,
) int {
	return neighborAllgatherv(collCall{"MPI_Neighbor_allgatherv_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, large)
}

func neighborAllgatherv(
	k collCall, sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype,
	comm abi.Handle, large bool,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	sources, _, err := neighbors(c)
	if err != nil {
		return c.Done(k.proc, err)
	}
	send, err := cbinding.BufferOf(sendbuf, sendcount, sendtype)
	if err != nil {
		return c.Done(k.proc, err)
	}
	recv, err := vectorOf(recvbuf, recvNames, recvcounts, displs, sources, recvtype, large)
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error {
			return c.NeighborAllgatherv(cbinding.Background, send, recv.Buffer, recv.counts, recv.displs)
		},
		func() (*mpi.Request, error) {
			return c.IneighborAllgatherv(send, recv.Buffer, recv.counts, recv.displs)
		},
		func() (*mpi.Persistent, error) {
			return c.NeighborAllgathervInit(send, recv.Buffer, recv.counts, recv.displs)
		})
}

// NeighborAlltoall is MPI_Neighbor_alltoall.
func NeighborAlltoall(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
) int {
	return neighborAlltoall(collCall{proc: "MPI_Neighbor_alltoall"},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// IneighborAlltoall is MPI_Ineighbor_alltoall.
func IneighborAlltoall(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
	request uintptr,
) int {
	return neighborAlltoall(collCall{"MPI_Ineighbor_alltoall", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

// NeighborAlltoallInit is MPI_Neighbor_alltoall_init.
func NeighborAlltoallInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm,
	info abi.Handle, request uintptr,
) int {
	return neighborAlltoall(collCall{"MPI_Neighbor_alltoall_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

func neighborAlltoall(
	k collCall, sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype,
	comm abi.Handle,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	sources, targets, err := neighbors(c)
	if err != nil {
		return c.Done(k.proc, err)
	}
	send, err := blocksOf(sendbuf, "sendcount", sendcount, targets, sendtype)
	if err != nil {
		return c.Done(k.proc, err)
	}
	recv, err := blocksOf(recvbuf, "recvcount", recvcount, sources, recvtype)
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.NeighborAlltoall(cbinding.Background, send, recv) },
		func() (*mpi.Request, error) { return c.IneighborAlltoall(send, recv) },
		func() (*mpi.Persistent, error) { return c.NeighborAlltoallInit(send, recv) })
}

// NeighborAlltoallv is MPI_Neighbor_alltoallv.
func NeighborAlltoallv(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype,
	comm abi.Handle, large bool,
) int {
	return neighborAlltoallv(collCall{proc: "MPI_Neighbor_alltoallv"},
		sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, large)
}

// IneighborAlltoallv is MPI_Ineighbor_alltoallv.
func IneighborAlltoallv(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype,
	comm abi.Handle, request uintptr, large bool,
) int {
	return neighborAlltoallv(collCall{"MPI_Ineighbor_alltoallv", nonblocking, request, 0},
		sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, large)
}

// NeighborAlltoallvInit is MPI_Neighbor_alltoallv_init.
func NeighborAlltoallvInit(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype, comm,
	info abi.Handle, request uintptr, large bool,
) int {
	return neighborAlltoallv(collCall{"MPI_Neighbor_alltoallv_init", persistent, request, info},
		sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, large)
}

func neighborAlltoallv(
	k collCall, sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts,
	rdispls uintptr, recvtype, comm abi.Handle, large bool,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	sources, targets, err := neighbors(c)
	if err != nil {
		return c.Done(k.proc, err)
	}
	send, err := vectorOf(sendbuf, [2]string{"sendcounts", "sdispls"}, sendcounts, sdispls, targets, sendtype, large)
	if err != nil {
		return c.Done(k.proc, err)
	}
	recv, err := vectorOf(recvbuf, [2]string{"recvcounts", "rdispls"}, recvcounts, rdispls, sources, recvtype, large)
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error {
			return c.NeighborAlltoallv(cbinding.Background,
				send.Buffer, send.counts, send.displs, recv.Buffer, recv.counts, recv.displs)
		},
		func() (*mpi.Request, error) {
			return c.IneighborAlltoallv(send.Buffer, send.counts, send.displs, recv.Buffer, recv.counts, recv.displs)
		},
		func() (*mpi.Persistent, error) {
			return c.NeighborAlltoallvInit(send.Buffer, send.counts, send.displs, recv.Buffer, recv.counts, recv.displs)
		})
}

// NeighborAlltoallw is MPI_Neighbor_alltoallw.
func NeighborAlltoallw(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr,
	comm abi.Handle, large bool,
) int {
	return neighborAlltoallw(collCall{proc: "MPI_Neighbor_alltoallw"},
		sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, large)
}

// IneighborAlltoallw is MPI_Ineighbor_alltoallw.
func IneighborAlltoallw(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm abi.Handle,
	request uintptr, large bool,
) int {
	return neighborAlltoallw(collCall{"MPI_Ineighbor_alltoallw", nonblocking, request, 0},
		sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, large)
}

// NeighborAlltoallwInit is MPI_Neighbor_alltoallw_init.
func NeighborAlltoallwInit(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm, info abi.Handle,
	request uintptr, large bool,
) int {
	return neighborAlltoallw(collCall{"MPI_Neighbor_alltoallw_init", persistent, request, info},
		sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, large)
}

func neighborAlltoallw(
	k collCall, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr,
	comm abi.Handle, large bool,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	sources, targets, err := neighbors(c)
	if err != nil {
		return c.Done(k.proc, err)
	}
	send, err := typedBlocks(sendbuf, "send", sendcounts, sdispls, sendtypes, targets, large, true)
	if err != nil {
		return c.Done(k.proc, err)
	}
	recv, err := typedBlocks(recvbuf, "recv", recvcounts, rdispls, recvtypes, sources, large, true)
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.NeighborAlltoallw(cbinding.Background, send, recv) },
		func() (*mpi.Request, error) { return c.IneighborAlltoallw(send, recv) },
		func() (*mpi.Persistent, error) { return c.NeighborAlltoallwInit(send, recv) })
}

// neighbors returns how many sources and targets the caller has in the topology of c.
func neighbors(c *cbinding.Communicator) (sources, targets int, err error) {
	t, err := c.NeedTopology()
	if err != nil {
		return 0, 0, err
	}
	from, to := t.Neighbors()
	return len(from), len(to), nil
}
