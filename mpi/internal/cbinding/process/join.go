package process

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// CommJoin is MPI_Comm_join. The socket stays open, and as it was.
func CommJoin(fd int, intercomm uintptr) int {
	cbinding.NullHandle(intercomm, abi.CommNull)
	const proc = "MPI_Comm_join"
	w, err := cbinding.NeedWorld()
	if err == nil {
		err = cbinding.Out("intercomm", intercomm)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	conn, restore, err := socketOf(fd)
	if err != nil {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "fd", fd, err.Error()))
	}
	d, err := w.Join(cbinding.Background, conn)
	_ = conn.Close() // a duplicate of the descriptor
	restore()
	return cbinding.Fail(proc, newInter(cbinding.Comms.Get(abi.CommSelf), intercomm, d, err))
}
