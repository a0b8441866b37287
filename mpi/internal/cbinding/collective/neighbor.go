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
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

// IneighborAllgather is MPI_Ineighbor_allgather.
func IneighborAllgather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
	request uintptr,
) int {
	return neighborAllgather(collCall{"MPI_Ineighbor_allgather", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

// NeighborAllgatherInit is MPI_Neighbor_allgather_init.
func NeighborAllgatherInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm,
	info abi.Handle, request uintptr,
) int {
	return neighborAllgather(collCall{"MPI_Neighbor_allgather_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

func neighborAllgather(k collCall, sent, received block, comm abi.Handle) int {
	c, sources, _, code := k.neighbors(comm)
	if c == nil {
		return code
	}
	send, err := sent.buffer()
	if err != nil {
		return k.refuse(c, err)
	}
	recv, err := received.times("recvcount", sources)
	if err != nil {
		return k.refuse(c, err)
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
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, comm)
}

// IneighborAllgatherv is MPI_Ineighbor_allgatherv.
func IneighborAllgatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype, comm abi.Handle,
	request uintptr, large bool,
) int {
	return neighborAllgatherv(collCall{"MPI_Ineighbor_allgatherv", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, comm)
}

// NeighborAllgathervInit is MPI_Neighbor_allgatherv_init.
func NeighborAllgathervInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr, recvtype,
	comm, info abi.Handle, request uintptr, large bool,
) int {
	return neighborAllgatherv(collCall{"MPI_Neighbor_allgatherv_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, blocks{recvbuf, recvcounts, displs, recvtype, large}, comm)
}

func neighborAllgatherv(k collCall, sent block, received blocks, comm abi.Handle) int {
	c, sources, _, code := k.neighbors(comm)
	if c == nil {
		return code
	}
	send, err := sent.buffer()
	if err != nil {
		return k.refuse(c, err)
	}
	recv, err := received.vector(recvNames, sources)
	if err != nil {
		return k.refuse(c, err)
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
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

// IneighborAlltoall is MPI_Ineighbor_alltoall.
func IneighborAlltoall(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm abi.Handle,
	request uintptr,
) int {
	return neighborAlltoall(collCall{"MPI_Ineighbor_alltoall", nonblocking, request, 0},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

// NeighborAlltoallInit is MPI_Neighbor_alltoall_init.
func NeighborAlltoallInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype, comm,
	info abi.Handle, request uintptr,
) int {
	return neighborAlltoall(collCall{"MPI_Neighbor_alltoall_init", persistent, request, info},
		block{sendbuf, sendcount, sendtype}, block{recvbuf, recvcount, recvtype}, comm)
}

func neighborAlltoall(k collCall, sent, received block, comm abi.Handle) int {
	c, sources, targets, code := k.neighbors(comm)
	if c == nil {
		return code
	}
	send, err := sent.times("sendcount", targets)
	if err != nil {
		return k.refuse(c, err)
	}
	recv, err := received.times("recvcount", sources)
	if err != nil {
		return k.refuse(c, err)
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
		blocks{sendbuf, sendcounts, sdispls, sendtype, large}, blocks{recvbuf, recvcounts, rdispls, recvtype, large}, comm)
}

// IneighborAlltoallv is MPI_Ineighbor_alltoallv.
func IneighborAlltoallv(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype,
	comm abi.Handle, request uintptr, large bool,
) int {
	return neighborAlltoallv(collCall{"MPI_Ineighbor_alltoallv", nonblocking, request, 0},
		blocks{sendbuf, sendcounts, sdispls, sendtype, large}, blocks{recvbuf, recvcounts, rdispls, recvtype, large}, comm)
}

// NeighborAlltoallvInit is MPI_Neighbor_alltoallv_init.
func NeighborAlltoallvInit(
	sendbuf, sendcounts, sdispls uintptr, sendtype abi.Handle, recvbuf, recvcounts, rdispls uintptr, recvtype, comm,
	info abi.Handle, request uintptr, large bool,
) int {
	return neighborAlltoallv(collCall{"MPI_Neighbor_alltoallv_init", persistent, request, info},
		blocks{sendbuf, sendcounts, sdispls, sendtype, large}, blocks{recvbuf, recvcounts, rdispls, recvtype, large}, comm)
}

func neighborAlltoallv(k collCall, sent, received blocks, comm abi.Handle) int {
	c, sources, targets, code := k.neighbors(comm)
	if c == nil {
		return code
	}
	send, err := sent.vector(toSendNames, targets)
	if err != nil {
		return k.refuse(c, err)
	}
	recv, err := received.vector(toRecvNames, sources)
	if err != nil {
		return k.refuse(c, err)
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
		typedBlocks{sendbuf, sendcounts, sdispls, sendtypes, large},
		typedBlocks{recvbuf, recvcounts, rdispls, recvtypes, large}, comm)
}

// IneighborAlltoallw is MPI_Ineighbor_alltoallw.
func IneighborAlltoallw(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm abi.Handle,
	request uintptr, large bool,
) int {
	return neighborAlltoallw(collCall{"MPI_Ineighbor_alltoallw", nonblocking, request, 0},
		typedBlocks{sendbuf, sendcounts, sdispls, sendtypes, large},
		typedBlocks{recvbuf, recvcounts, rdispls, recvtypes, large}, comm)
}

// NeighborAlltoallwInit is MPI_Neighbor_alltoallw_init.
func NeighborAlltoallwInit(
	sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes uintptr, comm, info abi.Handle,
	request uintptr, large bool,
) int {
	return neighborAlltoallw(collCall{"MPI_Neighbor_alltoallw_init", persistent, request, info},
		typedBlocks{sendbuf, sendcounts, sdispls, sendtypes, large},
		typedBlocks{recvbuf, recvcounts, rdispls, recvtypes, large}, comm)
}

func neighborAlltoallw(k collCall, sent, received typedBlocks, comm abi.Handle) int {
	c, sources, targets, code := k.neighbors(comm)
	if c == nil {
		return code
	}
	send, err := sent.buffers("send", targets, true)
	if err != nil {
		return k.refuse(c, err)
	}
	recv, err := received.buffers("recv", sources, true)
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.NeighborAlltoallw(cbinding.Background, send, recv) },
		func() (*mpi.Request, error) { return c.IneighborAlltoallw(send, recv) },
		func() (*mpi.Persistent, error) { return c.NeighborAlltoallwInit(send, recv) })
}

// neighbors is begin for a communicator with a topology, in which the caller has sources and targets.
func (k collCall) neighbors(comm abi.Handle) (c *cbinding.Communicator, sources, targets, code int) {
	if c, code = k.begin(comm); c == nil {
		return nil, 0, 0, code
	}
	t, err := c.NeedTopology()
	if err != nil {
		return nil, 0, 0, k.refuse(c, err)
	}
	from, to := t.Neighbors()
	return c, len(from), len(to), abi.Success
}
