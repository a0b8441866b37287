package communicator

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// CommSize is MPI_Comm_size.
func CommSize(comm abi.Handle, size uintptr) int {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail("MPI_Comm_size", err)
	}
	return c.Done("MPI_Comm_size", cbinding.SetInt(size, c.Size(), false))
}

// CommRank is MPI_Comm_rank.
func CommRank(comm abi.Handle, rank uintptr) int {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail("MPI_Comm_rank", err)
	}
	return c.Done("MPI_Comm_rank", cbinding.SetInt(rank, c.Rank(), false))
}

// CommCompare is MPI_Comm_compare.
func CommCompare(comm1, comm2 abi.Handle, result uintptr) int {
	const proc = "MPI_Comm_compare"
	c, err := cbinding.CommOf(comm1)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	d, err := cbinding.CommOf(comm2)
	if err != nil {
		return c.Done(proc, err)
	}
	return c.Done(proc, cbinding.SetInt(result, comparisons[c.Compare(d.Comm)], false))
}

// CommTestInter is MPI_Comm_test_inter.
func CommTestInter(comm abi.Handle, flag uintptr) int {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail("MPI_Comm_test_inter", err)
	}
	return c.Done("MPI_Comm_test_inter", cbinding.SetFlag(flag, c.IsInter()))
}

// CommGroup is MPI_Comm_group.
func CommGroup(comm abi.Handle, group uintptr) int {
	cbinding.NullHandle(group, abi.GroupNull)
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail("MPI_Comm_group", err)
	}
	return c.Done("MPI_Comm_group", cbinding.NewGroup(group, c.Group(), c.Session))
}

// intercomm returns the communicator of a handle that must be an intercommunicator.
func intercomm(h abi.Handle) (c *cbinding.Communicator, err error) {
	if c, err = cbinding.CommOf(h); err == nil && !c.IsInter() {
		err = cbinding.ArgError(abi.ErrComm, "comm", c.Comm, "is no intercommunicator")
	}
	return c, err
}

// CommRemoteSize is MPI_Comm_remote_size.
func CommRemoteSize(comm abi.Handle, size uintptr) int {
	const proc = "MPI_Comm_remote_size"
	c, err := intercomm(comm)
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	if err == nil {
		err = cbinding.SetInt(size, c.RemoteSize(), false)
	}
	return c.Done(proc, err)
}

// CommRemoteGroup is MPI_Comm_remote_group.
func CommRemoteGroup(comm abi.Handle, group uintptr) int {
	cbinding.NullHandle(group, abi.GroupNull)
	const proc = "MPI_Comm_remote_group"
	c, err := intercomm(comm)
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	if err == nil {
		err = cbinding.NewGroup(group, c.RemoteGroup(), c.Session)
	}
	return c.Done(proc, err)
}

// CommSetName is MPI_Comm_set_name.
func CommSetName(comm abi.Handle, name uintptr) int {
	const proc = "MPI_Comm_set_name"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	s, err := cbinding.ObjectName("comm_name", name)
	if err == nil {
		c.SetName(s)
	}
	return c.Done(proc, err)
}

// CommGetName is MPI_Comm_get_name.
func CommGetName(comm abi.Handle, name, resultlen uintptr) int {
	const proc = "MPI_Comm_get_name"
	if comm == abi.CommNull { // MPI-4.1, Section 7.8
		return cbinding.Fail(proc, cbinding.SetStr(name, resultlen, "MPI_COMM_NULL", abi.MaxObjectName))
	}
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, cbinding.SetStr(name, resultlen, c.Name(), abi.MaxObjectName))
}

// CommSetInfo is MPI_Comm_set_info.
func CommSetInfo(comm, info abi.Handle) int {
	const proc = "MPI_Comm_set_info"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	hints, err := cbinding.HintsOf(info)
	if err == nil {
		c.SetInfo(hints)
	}
	return c.Done(proc, err)
}

// CommGetInfo is MPI_Comm_get_info.
func CommGetInfo(comm abi.Handle, info uintptr) int {
	const proc = "MPI_Comm_get_info"
	cbinding.NullHandle(info, abi.InfoNull)
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, cbinding.NewInfoHandle(info, cbinding.UsedInfo(c.Info())))
}

// CommFree is MPI_Comm_free. Operations that are pending complete.
func CommFree(comm uintptr) int {
	const proc = "MPI_Comm_free"
	c, err := freed(comm)
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	if err == nil {
		if err = c.Attrs.Drop(c.Handle); err == nil {
			forgetComm(c, comm)
			c.FreeLater(func() {
				c.DropBuffer()
				c.Free()
			})
		}
	}
	return c.Done(proc, err)
}

// CommDisconnect is MPI_Comm_disconnect.
func CommDisconnect(comm uintptr) int {
	const proc = "MPI_Comm_disconnect"
	c, err := freed(comm)
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	if err == nil {
		if err = c.Attrs.Drop(c.Handle); err == nil {
			c.DropBuffer()
			if err = c.Disconnect(cbinding.Background); err == nil {
				forgetComm(c, comm)
			}
		}
	}
	return c.Done(proc, err)
}

// freed returns the communicator at p, which may be freed if there is no error.
func freed(p uintptr) (*cbinding.Communicator, error) {
	if p == 0 {
		return nil, cbinding.NullError("comm")
	}
	h := *cbinding.At[abi.Handle](p)
	c, err := cbinding.CommOf(h)
	if err == nil && h < abi.MaxPredefined {
		err = cbinding.ArgError(abi.ErrComm, "comm", c.Object.String(), "cannot be freed")
	}
	return c, err
}

// forget makes the handle at p invalid.
func forgetComm(c *cbinding.Communicator, p uintptr) {
	cbinding.Uncache(c.Handle)
	cbinding.Comms.Delete(c.Handle)
	cbinding.SetHandle(p, abi.CommNull)
}
