package mpi

// AlltoallwInit prepares Ialltoallw (MPI_Alltoallw_init).
func AlltoallwInit[T Element](c *Comm, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) (*Persistent, error) {
	return prepare(c, func(c *Comm) (*Request, error) {
		return Ialltoallw(c, send, scounts, sdispls, stypes, recv, rcounts, rdispls, rtypes)
	})
}

// prepareOn is prepare for neighbour collectives.
func prepareOn(t Topology, start func(t Topology) (*Request, error)) (*Persistent, error) {
	return prepare(t.Comm(), func(c *Comm) (*Request, error) { return start(t.on(c)) })
}

// NeighborAllgatherInit prepares IneighborAllgather
// (MPI_Neighbor_allgather_init).
func NeighborAllgatherInit[T Element](t Topology, send, recv []T) (*Persistent, error) {
	return prepareOn(t, func(t Topology) (*Request, error) { return IneighborAllgather(t, send, recv) })
}

// NeighborAllgathervInit prepares IneighborAllgatherv
// (MPI_Neighbor_allgatherv_init).
func NeighborAllgathervInit[T Element](t Topology, send, recv []T, counts, displs []int) (*Persistent, error) {
	return prepareOn(t, func(t Topology) (*Request, error) { return IneighborAllgatherv(t, send, recv, counts, displs) })
}

// NeighborAlltoallInit prepares IneighborAlltoall (MPI_Neighbor_alltoall_init).
func NeighborAlltoallInit[T Element](t Topology, send, recv []T) (*Persistent, error) {
	return prepareOn(t, func(t Topology) (*Request, error) { return IneighborAlltoall(t, send, recv) })
}

// NeighborAlltoallvInit prepares IneighborAlltoallv
// (MPI_Neighbor_alltoallv_init).
func NeighborAlltoallvInit[T Element](
	t Topology, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) (*Persistent, error) {
	return prepareOn(t, func(t Topology) (*Request, error) {
		return IneighborAlltoallv(t, send, scounts, sdispls, recv, rcounts, rdispls)
	})
}

// NeighborAlltoallwInit prepares IneighborAlltoallw
// (MPI_Neighbor_alltoallw_init).
func NeighborAlltoallwInit[T Element](t Topology, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) (*Persistent, error) {
	return prepareOn(t, func(t Topology) (*Request, error) {
		return IneighborAlltoallw(t, send, scounts, sdispls, stypes, recv, rcounts, rdispls, rtypes)
	})
}
