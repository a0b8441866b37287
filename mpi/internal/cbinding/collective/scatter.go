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
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
}

// Iscatter is MPI_Iscatter.
func Iscatter(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype abi.Handle, root int,
	comm abi.Handle, request uintptr,
) int {
	return scatter(collCall{"MPI_Iscatter", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
}

// ScatterInit is MPI_Scatter_init.
func ScatterInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm, info abi.Handle, request uintptr,
) int {
	return scatter(collCall{"MPI_Scatter_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
}

func scatter(
	k collCall, sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm abi.Handle,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	r, err := c.Root(root)
	if err != nil {
		return c.Done(k.proc, err)
	}
	var send, recv mpi.Buffer
	if collects(c, r) {
		send, err = blocksOf(sendbuf, "sendcount", sendcount, c.Peers(), sendtype)
		if err == nil {
			recv, err = ownBlock(c, recvbuf, recvcount, recvtype, sendbuf, r*sendcount, sendcount, sendtype)
		}
	} else if r != mpi.ProcNull {
		recv, err = cbinding.BufferOf(recvbuf, recvcount, recvtype)
	}
	if err != nil {
		return c.Done(k.proc, err)
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
		sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, large)
}

// Iscatterv is MPI_Iscatterv.
func Iscatterv(
	sendbuf, sendcounts, displs uintptr, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm abi.Handle, request uintptr, large bool,
) int {
	return scatterv(collCall{"MPI_Iscatterv", nonblocking, request, 0},
		sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, large)
}

// ScattervInit is MPI_Scatterv_init.
func ScattervInit(
	sendbuf, sendcounts, displs uintptr, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm, info abi.Handle, request uintptr, large bool,
) int {
	return scatterv(collCall{"MPI_Scatterv_init", persistent, request, info},
		sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, large)
}

func scatterv(
	k collCall, sendbuf, sendcounts, displs uintptr, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm abi.Handle, large bool,
) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	r, err := c.Root(root)
	if err != nil {
		return c.Done(k.proc, err)
	}
	var send vector
	var recv mpi.Buffer
	if collects(c, r) {
		send, err = vectorOf(sendbuf, sendNames, sendcounts, displs, c.Peers(), sendtype, large)
		if err == nil && r >= 0 {
			var at int
			if at, err = intAt(sendNames[1], displs, r, large); err == nil {
				recv, err = ownBlock(c, recvbuf, recvcount, recvtype, sendbuf, at, send.counts[r], sendtype)
			}
		}
	} else if r != mpi.ProcNull {
		recv, err = cbinding.BufferOf(recvbuf, recvcount, recvtype)
	}
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.Scatterv(cbinding.Background, send.Buffer, recv, send.counts, send.displs, r) },
		func() (*mpi.Request, error) { return c.Iscatterv(send.Buffer, recv, send.counts, send.displs, r) },
		func() (*mpi.Persistent, error) { return c.ScattervInit(send.Buffer, recv, send.counts, send.displs, r) })
}
