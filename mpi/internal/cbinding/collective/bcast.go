package collective

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Barrier is MPI_Barrier.
func Barrier(comm abi.Handle) int { return barrier(collCall{proc: "MPI_Barrier"}, comm) }

// Ibarrier is MPI_Ibarrier.
func Ibarrier(comm abi.Handle, request uintptr) int {
	return barrier(collCall{"MPI_Ibarrier", nonblocking, request, 0}, comm)
}

// BarrierInit is MPI_Barrier_init.
func BarrierInit(comm, info abi.Handle, request uintptr) int {
	return barrier(collCall{"MPI_Barrier_init", persistent, request, info}, comm)
}

func barrier(k collCall, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	return k.end(c,
		func() error { return mpi.Barrier(cbinding.Background, c.Comm) },
		func() (*mpi.Request, error) { return mpi.Ibarrier(c.Comm) },
		func() (*mpi.Persistent, error) { return mpi.BarrierInit(c.Comm) })
}

// Bcast is MPI_Bcast.
func Bcast(buffer uintptr, count int, datatype abi.Handle, root int, comm abi.Handle) int {
	return bcast(collCall{proc: "MPI_Bcast"}, buffer, count, datatype, root, comm)
}

// Ibcast is MPI_Ibcast.
func Ibcast(buffer uintptr, count int, datatype abi.Handle, root int, comm abi.Handle, request uintptr) int {
	return bcast(collCall{"MPI_Ibcast", nonblocking, request, 0}, buffer, count, datatype, root, comm)
}

// BcastInit is MPI_Bcast_init.
func BcastInit(buffer uintptr, count int, datatype abi.Handle, root int, comm, info abi.Handle, request uintptr) int {
	return bcast(collCall{"MPI_Bcast_init", persistent, request, info}, buffer, count, datatype, root, comm)
}

func bcast(k collCall, buffer uintptr, count int, datatype abi.Handle, root int, comm abi.Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	r, err := c.Root(root)
	var b mpi.Buffer
	if err == nil && r != mpi.ProcNull {
		b, err = cbinding.BufferOf(buffer, count, datatype)
	}
	if err != nil {
		return k.refuse(c, err)
	}
	return k.end(c,
		func() error { return c.Bcast(cbinding.Background, b, r) },
		func() (*mpi.Request, error) { return c.Ibcast(b, r) },
		func() (*mpi.Persistent, error) { return c.BcastInit(b, r) })
}
