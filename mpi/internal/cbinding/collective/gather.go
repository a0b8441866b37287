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
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
}

// Igather is MPI_Igather.
func Igather(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int, recvtype abi.Handle, root int,
	comm abi.Handle, request uintptr,
) int {
	return gather(collCall{"MPI_Igather", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
}

// GatherInit is MPI_Gather_init.
func GatherInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, root int, comm, info abi.Handle, request uintptr,
) int {
	return gather(collCall{"MPI_Gather_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
}

func gather(
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
		recv, err = blocksOf(recvbuf, "recvcount", recvcount, c.Peers(), recvtype)
		if err == nil {
			send, err = ownBlock(c, sendbuf, sendcount, sendtype, recvbuf, r*recvcount, recvcount, recvtype)
		}
	} else if r != mpi.ProcNull {
		send, err = cbinding.BufferOf(sendbuf, sendcount, sendtype)
	}
	if err != nil {
		return c.Done(k.proc, err)
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
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, large)
}

// Igatherv is MPI_Igatherv.
func Igatherv(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr,
	recvtype abi.Handle, root int, comm abi.Handle, request uintptr, large bool,
) int {
	return gatherv(collCall{"MPI_Igatherv", nonblocking, request, 0},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, large)
}

// GathervInit is MPI_Gatherv_init.
func GathervInit(
	sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr,
	recvtype abi.Handle, root int, comm, info abi.Handle, request uintptr, large bool,
) int {
	return gatherv(collCall{"MPI_Gatherv_init", persistent, request, info},
		sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, large)
}

func gatherv(
	k collCall, sendbuf uintptr, sendcount int, sendtype abi.Handle, recvbuf, recvcounts, displs uintptr,
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
	var send mpi.Buffer
	var recv vector
	if collects(c, r) {
		recv, err = vectorOf(recvbuf, recvNames, recvcounts, displs, c.Peers(), recvtype, large)
		if err == nil && r >= 0 {
			var at int
			if at, err = intAt(recvNames[1], displs, r, large); err == nil {
				send, err = ownBlock(c, sendbuf, sendcount, sendtype, recvbuf, at, recv.counts[r], recvtype)
			}
		}
	} else if r != mpi.ProcNull {
		send, err = cbinding.BufferOf(sendbuf, sendcount, sendtype)
	}
	if err != nil {
		return c.Done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.Gatherv(cbinding.Background, send, recv.Buffer, recv.counts, recv.displs, r) },
		func() (*mpi.Request, error) { return c.Igatherv(send, recv.Buffer, recv.counts, recv.displs, r) },
		func() (*mpi.Persistent, error) { return c.GathervInit(send, recv.Buffer, recv.counts, recv.displs, r) })
}

// recvNames and sendNames are what the parameters of blocks are called.
var (
	recvNames = [2]string{"recvcounts", "displs"}
	sendNames = [2]string{"sendcounts", "displs"}
)

// collects reports whether the caller is the root, of which the buffer with many blocks is significant.
func collects(c *cbinding.Communicator, root int) bool {
	return root == mpi.Root || root == c.Rank() && !c.IsInter()
}

// ownBlock returns the buffer of the root itself: its block, which begins at item at of the other buffer,
// if it is MPI_IN_PLACE. On an intercommunicator it is not significant.
func ownBlock(c *cbinding.Communicator,
	buf uintptr, count int, datatype abi.Handle, all uintptr, at, n int, allType abi.Handle,
) (mpi.Buffer, error) {
	if c.IsInter() {
		return mpi.Buffer{}, nil
	}
	place, err := itemAt(all, at, allType)
	if err != nil {
		return mpi.Buffer{}, err
	}
	if mayInPlace(c, buf) {
		return cbinding.BufferOf(place, n, allType)
	}
	b, err := cbinding.BufferOf(buf, count, datatype)
	if err == nil && datatype == allType && buf == place && count == n && b.Len() > 0 {
		err = aliasError(buf)
	}
	return b, err
}
