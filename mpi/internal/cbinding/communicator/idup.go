package communicator

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// CommIdup is MPI_Comm_idup.
func CommIdup(comm abi.Handle, newcomm, request uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_idup"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, idupComm(c, newcomm, request, c.Info()))
}

// CommIdupWithInfo is MPI_Comm_idup_with_info.
func CommIdupWithInfo(comm, info abi.Handle, newcomm, request uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_idup_with_info"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	hints, err := cbinding.HintsOf(info)
	if err == nil {
		err = idupComm(c, newcomm, request, hints)
	} else {
		err = refuseDup(c, err)
	}
	return c.Done(proc, err)
}

// idup is dup with a request, which is done at once.
func idupComm(c *cbinding.Communicator, p, request uintptr, hints mpi.Info) error {
	if err := cbinding.RequestRoom(request); err != nil {
		return refuseDup(c, err)
	}
	if err := dupComm(c, p, hints); err != nil {
		return err
	}
	// A message to nobody is done when it starts.
	r, err := c.Isend(mpi.Buffer{}, mpi.ProcNull, 0)
	if err != nil {
		return err
	}
	h, err := cbinding.PutRequest(r, &c.Object)
	if err == nil {
		cbinding.SetHandle(request, h)
	}
	return err
}
