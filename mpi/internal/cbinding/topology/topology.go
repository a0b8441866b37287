package topology

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// topologyOf returns a communicator with a topology of one kind, *mpi.Cart or *mpi.Graph; nil with the code
// of an error. name is that of the kind in the standard.
func topologyOf[T mpi.Topology](proc string, comm abi.Handle, name string) (*cbinding.Communicator, T, int) {
	var none T
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return nil, none, cbinding.Fail(proc, err)
	}
	t, ok := c.Topology().(T)
	if !ok {
		err := cbinding.ArgError(abi.ErrTopology, "comm", c.Comm, "has no topology of kind "+name)
		return nil, none, c.Done(proc, err)
	}
	return c, t, abi.Success
}

func cartOf(proc string, comm abi.Handle) (*cbinding.Communicator, *mpi.Cart, int) {
	return topologyOf[*mpi.Cart](proc, comm, "MPI_CART")
}

// graphOf returns a communicator with a graph that all ranks know, or with full false a distributed one.
func graphOf(proc string, comm abi.Handle, full bool) (*cbinding.Communicator, *mpi.Graph, int) {
	name := "MPI_DIST_GRAPH"
	if full {
		name = "MPI_GRAPH"
	}
	c, g, code := topologyOf[*mpi.Graph](proc, comm, name)
	if c != nil && g.Full() != full {
		err := cbinding.ArgError(abi.ErrTopology, "comm", c.Comm, "has no topology of kind "+name)
		return nil, nil, c.Done(proc, err)
	}
	return c, g, code
}

// reordering returns the options of a topology.
func reordering(reorder int) []mpi.TopologyOption {
	if reorder != 0 {
		return []mpi.TopologyOption{mpi.Reorder()}
	}
	return nil
}

// asArgument gives an error of a topology that cannot be made the class of a bad argument.
func asArgument(class int, err error) error {
	if err != nil && mpi.ErrorClass(err) == mpi.ClassTopology {
		return &cbinding.CallError{Class: class, Text: err.Error()}
	}
	return err
}

// newTopology ends a call that makes a communicator with a topology; d is nil if the caller is not in it.
func newTopology(c *cbinding.Communicator, proc string, p uintptr, d *mpi.Comm, err error) int {
	if err == nil {
		err = c.NewComm(p, d)
	} else if p != 0 {
		cbinding.SetHandle(p, abi.CommNull)
	}
	return c.Done(proc, err)
}

// TopoTest is MPI_Topo_test.
func TopoTest(comm abi.Handle, status uintptr) int {
	const proc = "MPI_Topo_test"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	kind := abi.Undefined
	switch t := c.Topology().(type) {
	case *mpi.Cart:
		kind = abi.Cart
	case *mpi.Graph:
		if kind = abi.DistGraph; t.Full() {
			kind = abi.Graph
		}
	}
	return c.Done(proc, cbinding.SetInt(status, kind, false))
}

// DimsCreate is MPI_Dims_create.
func DimsCreate(nnodes, ndims int, dims uintptr) int {
	const proc = "MPI_Dims_create"
	if ndims < 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrDims, "ndims", ndims, "is negative"))
	}
	if ndims == 0 {
		return abi.Success
	}
	given, err := cbinding.Ints("dims", dims, ndims, false)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	made, err := mpi.Dims(nnodes, given...)
	if err != nil {
		return cbinding.Fail(proc, asArgument(abi.ErrDims, err))
	}
	return cbinding.Fail(proc, cbinding.SetInts(dims, made, false))
}
