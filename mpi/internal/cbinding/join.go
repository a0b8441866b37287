package cbinding

import "github.com/weftstack/weft/mpi/internal/abi"

// CommJoin is MPI_Comm_join. The socket stays open, and as it was.
func CommJoin(fd int, intercomm uintptr) int {
	nullHandle(intercomm, abi.CommNull)
	const proc = "MPI_Comm_join"
	w, err := needWorld()
	if err == nil {
		err = out("intercomm", intercomm)
	}
	if err != nil {
		return fail(proc, err)
	}
	conn, restore, err := socketOf(fd)
	if err != nil {
		return fail(proc, argError(abi.ErrArg, "fd", fd, err.Error()))
	}
	d, err := w.Join(background, conn)
	_ = conn.Close() // a duplicate of the descriptor
	restore()
	return fail(proc, comms.get(abi.CommSelf).newInter(intercomm, d, err))
}
