package cbinding

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A Communicator is an MPI_Comm. It has no error handler of package mpi, whose methods return errors.
type Communicator struct {
	Object
	*mpi.Comm
	Session *Session // that it was made in; nil: MPI_Init
}

// NewComm stores the handle of a communicator that was made from c at p: MPI_COMM_NULL if the caller is
// not in it. The error handler is that of c (MPI-4.1, Section 9.3).
func (c *Communicator) NewComm(p uintptr, d *mpi.Comm) error {
	if d == nil {
		SetHandle(p, abi.CommNull)
		return nil
	}
	o := &Communicator{Comm: d, Session: c.Session}
	o.Handler.Store(c.Handler.Load())
	return o.Publish(p)
}

// CommRoom checks where the handle of a communicator that is to be made is to be stored, and that there is room for
// one.
func CommRoom(name string, p uintptr) error {
	if err := Out(name, p); err != nil {
		return err
	}
	return Comms.Room()
}

// RefuseSplit takes part in the making of communicators by all ranks of c as a rank whose arguments are wrong: the
// others, which wait for it, get an error too. It returns err.
func (c *Communicator) RefuseSplit(err error) error {
	const noColor = -1 // which package mpi refuses, on all ranks
	return c.Refuse(err, func() { _, _ = c.Split(Background, noColor, 0) })
}

// Publish gives o a handle and stores it at p.
func (o *Communicator) Publish(p uintptr) error {
	h, err := Comms.Put(o)
	if err != nil {
		o.Free()
		return err
	}
	o.Handle = h
	CacheComm(h, o.Rank(), o.Size())
	SetHandle(p, h)
	return nil
}

// AnyComm returns a communicator for calls without one: MPI_COMM_SELF, or one that was made in a session.
func AnyComm() (c *Communicator, err error) {
	if c = Comms.Get(abi.CommSelf); c != nil {
		return c, nil
	}
	Comms.Each(func(_ abi.Handle, x *Communicator) bool {
		c = x
		return false
	})
	switch err := NotRunning(); {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, &CallError{Class: abi.ErrOther, Text: "needs MPI_Init, or a communicator of a session"}
	}
	return c, nil
}

// NeedTopology returns the topology of c, or the error if it has none.
func (c *Communicator) NeedTopology() (mpi.Topology, error) {
	if t := c.Topology(); t != nil {
		return t, nil
	}
	return nil, ArgError(abi.ErrTopology, "comm", fmt.Sprintf("%#x", uint(c.Handle)), "has no topology")
}
