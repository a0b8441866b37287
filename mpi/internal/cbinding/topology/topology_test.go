package topology

import (
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding/communicator"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

// TestTopologies asks communicators of one rank for topologies, of the kind they have and of others.
func TestTopologies(t *testing.T) {
	ctest.Returning(t)
	b := ctest.NewBox()
	one := ctest.Heap[int32](1)
	ctest.Must(t, CartCreate(abi.CommSelf, 1, one, one, 0, ctest.Addr(&b.Handle)))
	grid := b.Handle
	ctest.Must(t, TopoTest(grid, ctest.Addr(&b.N)))
	if b.N != abi.Cart {
		t.Errorf("topology %d, want %d", b.N, abi.Cart)
	}
	ctest.Must(t, CartShift(grid, 0, 5, ctest.Addr(&b.N), ctest.Addr(&b.Flag)))
	if b.N != 0 || b.Flag != 0 {
		t.Errorf("around a ring of one: from %d to %d", b.N, b.Flag)
	}
	ctest.WantError(t, GraphdimsGet(grid, ctest.Addr(&b.N), ctest.Addr(&b.Flag)), abi.ErrTopology, "MPI_GRAPH")
	ctest.WantError(t, CartdimGet(abi.CommSelf, ctest.Addr(&b.N)), abi.ErrTopology, "MPI_CART")
	ctest.WantError(t, CartGet(grid, 0, one, one, one), abi.ErrArg, "maxdims 0")
	ctest.Must(t, b.Free(communicator.CommFree, grid))
	zero := ctest.Heap[int32](0)
	ctest.Must(t, DistGraphCreateAdjacent(abi.CommSelf, 1, zero, one, 1, zero, one, abi.InfoNull, 0, ctest.Addr(&b.Handle)))
	graph := b.Handle
	ctest.Must(t, DistGraphNeighborsCount(graph, ctest.Addr(&b.N), ctest.Addr(&b.Flag), ctest.Addr(&b.Ints[0])))
	if b.N != 1 || b.Flag != 1 || b.Ints[0] != 1 {
		t.Errorf("%d sources, %d targets, weighted %d", b.N, b.Flag, b.Ints[0])
	}
	ctest.Must(t, DistGraphNeighbors(graph, 1, ctest.Addr(&b.Ints[0]), abi.Unweighted, 1, ctest.Addr(&b.Ints[1]), ctest.Addr(&b.Ints[2])))
	if b.Ints[0] != 0 || b.Ints[1] != 0 || b.Ints[2] != 1 {
		t.Errorf("neighbours and weight: %v", b.Ints[:3])
	}
	ctest.WantError(t, DistGraphNeighbors(graph, 1, ctest.Addr(&b.Ints[0]), abi.WeightsEmpty, 1, ctest.Addr(&b.Ints[1]), abi.Unweighted),
		abi.ErrArg, "sourceweights")
	ctest.Must(t, b.Free(communicator.CommFree, graph))
}
