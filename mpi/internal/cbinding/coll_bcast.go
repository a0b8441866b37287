package cbinding

import "github.com/weftstack/weft/mpi"

// Barrier is MPI_Barrier.
func Barrier(comm Handle) int { return barrier(collCall{proc: "MPI_Barrier"}, comm) }

// Ibarrier is MPI_Ibarrier.
func Ibarrier(comm Handle, request uintptr) int {
	return barrier(collCall{"MPI_Ibarrier", nonblocking, request, 0}, comm)
}

// BarrierInit is MPI_Barrier_init.
func BarrierInit(comm, info Handle, request uintptr) int {
	return barrier(collCall{"MPI_Barrier_init", persistent, request, info}, comm)
}

func barrier(k collCall, comm Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	return k.end(c,
		func() error { return mpi.Barrier(background, c.Comm) },
		func() (*mpi.Request, error) { return mpi.Ibarrier(c.Comm) },
		func() (*mpi.Persistent, error) { return mpi.BarrierInit(c.Comm) })
}

// Bcast is MPI_Bcast.
func Bcast(buffer uintptr, count int, datatype Handle, root int, comm Handle) int {
	return bcast(collCall{proc: "MPI_Bcast"}, buffer, count, datatype, root, comm)
}

// Ibcast is MPI_Ibcast.
func Ibcast(buffer uintptr, count int, datatype Handle, root int, comm Handle, request uintptr) int {
	return bcast(collCall{"MPI_Ibcast", nonblocking, request, 0}, buffer, count, datatype, root, comm)
}

// BcastInit is MPI_Bcast_init.
func BcastInit(buffer uintptr, count int, datatype Handle, root int, comm, info Handle, request uintptr) int {
	return bcast(collCall{"MPI_Bcast_init", persistent, request, info}, buffer, count, datatype, root, comm)
}

func bcast(k collCall, buffer uintptr, count int, datatype Handle, root int, comm Handle) int {
	c, code := k.begin(comm)
	if c == nil {
		return code
	}
	r, err := c.root(root)
	var b mpi.Buffer
	if err == nil && r != mpi.ProcNull {
		b, err = bufferOf(buffer, count, datatype)
	}
	if err != nil {
		return c.done(k.proc, err)
	}
	return k.end(c,
		func() error { return c.Bcast(background, b, r) },
		func() (*mpi.Request, error) { return c.Ibcast(b, r) },
		func() (*mpi.Persistent, error) { return c.BcastInit(b, r) })
}
