package cbinding

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A communicator is an MPI_Comm. It has no error handler of package mpi, whose methods return errors.
type communicator struct {
	object
	*mpi.Comm
	session *session // that it was made in; nil: MPI_Init
}

// newComm stores the handle of a communicator that was made from c at p: MPI_COMM_NULL if the caller is
// not in it. The error handler is that of c (MPI-4.1, Section 9.3).
func (c *communicator) newComm(p uintptr, d *mpi.Comm) error {
	if d == nil {
		setHandle(p, abi.CommNull)
		return nil
	}
	o := &communicator{Comm: d, session: c.session}
	o.handler.Store(c.handler.Load())
	return o.put(p)
}

// put gives o a handle and stores it at p.
func (o *communicator) put(p uintptr) error {
	h, err := comms.put(o)
	if err != nil {
		o.Free()
		return err
	}
	o.handle = h
	CacheComm(h, o.Rank(), o.Size())
	setHandle(p, h)
	return nil
}

// CommSize is MPI_Comm_size.
func CommSize(comm Handle, size uintptr) int {
	c, err := commOf(comm)
	if err != nil {
		return fail("MPI_Comm_size", err)
	}
	return c.done("MPI_Comm_size", setInt(size, c.Size(), false))
}

// CommRank is MPI_Comm_rank.
func CommRank(comm Handle, rank uintptr) int {
	c, err := commOf(comm)
	if err != nil {
		return fail("MPI_Comm_rank", err)
	}
	return c.done("MPI_Comm_rank", setInt(rank, c.Rank(), false))
}

// CommCompare is MPI_Comm_compare.
func CommCompare(comm1, comm2 Handle, result uintptr) int {
	const proc = "MPI_Comm_compare"
	c, err := commOf(comm1)
	if err != nil {
		return fail(proc, err)
	}
	d, err := commOf(comm2)
	if err != nil {
		return c.done(proc, err)
	}
	return c.done(proc, setInt(result, comparisons[c.Compare(d.Comm)], false))
}

// CommTestInter is MPI_Comm_test_inter.
func CommTestInter(comm Handle, flag uintptr) int {
	c, err := commOf(comm)
	if err != nil {
		return fail("MPI_Comm_test_inter", err)
	}
	return c.done("MPI_Comm_test_inter", setFlag(flag, c.IsInter()))
}

// CommGroup is MPI_Comm_group.
func CommGroup(comm Handle, group uintptr) int {
	nullHandle(group, abi.GroupNull)
	c, err := commOf(comm)
	if err != nil {
		return fail("MPI_Comm_group", err)
	}
	return c.done("MPI_Comm_group", newGroup(group, c.Group(), c.session))
}

// intercomm returns the communicator of a handle that must be an intercommunicator.
func intercomm(h Handle) (c *communicator, err error) {
	if c, err = commOf(h); err == nil && !c.IsInter() {
		err = argError(abi.ErrComm, "comm", c.Comm, "is no intercommunicator")
	}
	return c, err
}

// CommRemoteSize is MPI_Comm_remote_size.
func CommRemoteSize(comm Handle, size uintptr) int {
	const proc = "MPI_Comm_remote_size"
	c, err := intercomm(comm)
	if c == nil {
		return fail(proc, err)
	}
	if err == nil {
		err = setInt(size, c.RemoteSize(), false)
	}
	return c.done(proc, err)
}

// CommRemoteGroup is MPI_Comm_remote_group.
func CommRemoteGroup(comm Handle, group uintptr) int {
	nullHandle(group, abi.GroupNull)
	const proc = "MPI_Comm_remote_group"
	c, err := intercomm(comm)
	if c == nil {
		return fail(proc, err)
	}
	if err == nil {
		err = newGroup(group, c.RemoteGroup(), c.session)
	}
	return c.done(proc, err)
}

// CommSetName is MPI_Comm_set_name.
func CommSetName(comm Handle, name uintptr) int {
	const proc = "MPI_Comm_set_name"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	s, err := objectName("comm_name", name)
	if err == nil {
		c.SetName(s)
	}
	return c.done(proc, err)
}

// CommGetName is MPI_Comm_get_name.
func CommGetName(comm Handle, name, resultlen uintptr) int {
	const proc = "MPI_Comm_get_name"
	if comm == abi.CommNull { // MPI-4.1, Section 7.8
		return fail(proc, setStr(name, resultlen, "MPI_COMM_NULL", abi.MaxObjectName))
	}
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	return c.done(proc, setStr(name, resultlen, c.Name(), abi.MaxObjectName))
}

// CommSetInfo is MPI_Comm_set_info.
func CommSetInfo(comm, info Handle) int {
	const proc = "MPI_Comm_set_info"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	hints, err := hintsOf(info)
	if err == nil {
		c.SetInfo(hints)
	}
	return c.done(proc, err)
}

// CommGetInfo is MPI_Comm_get_info.
func CommGetInfo(comm Handle, info uintptr) int {
	const proc = "MPI_Comm_get_info"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	return c.done(proc, newInfoHandle(info, usedInfo(c.Info())))
}

// CommFree is MPI_Comm_free. Operations that are pending complete.
func CommFree(comm uintptr) int {
	const proc = "MPI_Comm_free"
	c, err := freed(comm)
	if c == nil {
		return fail(proc, err)
	}
	if err == nil {
		if err = c.attrs.drop(c.handle); err == nil {
			c.forget(comm)
			c.freeLater(func() {
				c.dropBuffer()
				c.Free()
			})
		}
	}
	return c.done(proc, err)
}

// CommDisconnect is MPI_Comm_disconnect.
func CommDisconnect(comm uintptr) int {
	const proc = "MPI_Comm_disconnect"
	c, err := freed(comm)
	if c == nil {
		return fail(proc, err)
	}
	if err == nil {
		if err = c.attrs.drop(c.handle); err == nil {
			c.dropBuffer()
			if err = c.Disconnect(background); err == nil {
				c.forget(comm)
			}
		}
	}
	return c.done(proc, err)
}

// freed returns the communicator at p, which may be freed if there is no error.
func freed(p uintptr) (*communicator, error) {
	if p == 0 {
		return nil, nullError("comm")
	}
	h := *at[Handle](p)
	c, err := commOf(h)
	if err == nil && h < maxPredefined {
		err = argError(abi.ErrComm, "comm", c.object.String(), "cannot be freed")
	}
	return c, err
}

// forget makes the handle at p invalid.
func (c *communicator) forget(p uintptr) {
	Uncache(c.handle)
	comms.delete(c.handle)
	setHandle(p, abi.CommNull)
}
