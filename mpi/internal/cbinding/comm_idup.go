package cbinding

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// CommIdup is MPI_Comm_idup.
func CommIdup(comm Handle, newcomm, request uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_idup"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	return c.done(proc, c.idup(newcomm, request, c.Info()))
}

// CommIdupWithInfo is MPI_Comm_idup_with_info.
func CommIdupWithInfo(comm, info Handle, newcomm, request uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_idup_with_info"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	hints, err := hintsOf(info)
	if err == nil {
		err = c.idup(newcomm, request, hints)
	}
	return c.done(proc, err)
}

// idup is dup with a request, which is done at once.
func (c *communicator) idup(p, request uintptr, hints mpi.Info) error {
	if request == 0 {
		return nullError("request")
	}
	if err := c.dup(p, hints); err != nil {
		return err
	}
	// A message to nobody is done when it starts.
	r, err := c.Isend(mpi.Buffer{}, mpi.ProcNull, 0)
	if err != nil {
		return err
	}
	h, err := putRequest(r, &c.object)
	if err == nil {
		setHandle(request, h)
	}
	return err
}
