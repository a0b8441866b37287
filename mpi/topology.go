package mpi

import "fmt"

// A Topology is a communicator whose ranks know their neighbours: a *Cart or a
// *Graph (MPI-4.1, Chapter 8). Neighbour collectives need one.
type Topology interface {
	// Comm is the communicator.
	Comm() *Comm
	// Neighbors returns the ranks that the caller gets data from and sends
	// data to, in the order of the blocks. Some may be ProcNull.
	Neighbors() (sources, targets []int)

	// flows returns for each source, and each target, which of two streams of
	// messages it belongs to. Messages between two ranks on one of them match
	// in the order of the lists.
	flows() (sources, targets []int)

	// on returns the topology on another communicator of the same ranks.
	on(c *Comm) Topology
}

// Topology returns the *Cart or *Graph that c is the communicator of, or nil if it has
// none (MPI_Topo_test). Dup keeps it. It is local.
func (c *Comm) Topology() Topology { return c.topology }

func checkOneGroup(c *Comm) error {
	if c.remote != nil {
		return fmt.Errorf("%w: topology of an intercommunicator", ErrComm)
	}
	return nil
}
