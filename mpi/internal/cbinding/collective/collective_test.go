package collective

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

// ints32 returns memory with the values, and its address.
func ints32(v ...int32) ([]int32, uintptr) {
	b := slices.Clone(v)
	ctest.OnHeap = append(ctest.OnHeap, b)
	return b, uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// TestUserOp calls a function of the program through all that reduces on one rank: with the handle of the
// caller, whole items, and what comes first as the first operand.
func TestUserOp(t *testing.T) {
	ctest.Returning(t)
	old := cbinding.CallUserOp
	defer func() { cbinding.CallUserOp = old }()
	const function = 0x5000
	var large bool
	cbinding.CallUserOp = func(fn, in, inout uintptr, count int, datatype abi.Handle, big bool) {
		if fn != function || datatype != abi.X2int || big != large {
			t.Errorf("called %#x with datatype %#x, large %v", fn, uint(datatype), big)
		}
		x, y := cbinding.Array[int32](in, 2*count), cbinding.Array[int32](inout, 2*count)
		for i := range x {
			y[i] = 10*x[i] + y[i]
		}
	}
	b := ctest.NewBox()
	for _, large = range []bool{false, true} {
		ctest.Must(t, OpCreate(function, 0, ctest.Addr(&b.Handle), large))
		o := b.Handle
		ctest.Must(t, OpCommutative(o, ctest.Addr(&b.Flag)))
		if b.Flag != 0 {
			t.Errorf("commutes: %d", b.Flag)
		}
		_, in := ints32(1, 2, 3, 4)
		inout, p := ints32(5, 6, 7, 8)
		ctest.Must(t, ReduceLocal(in, p, 2, abi.X2int, o))
		if want := []int32{15, 26, 37, 48}; !slices.Equal(inout, want) {
			t.Errorf("reduced to %v, want %v", inout, want)
		}
		ctest.Must(t, Allreduce(in, p, 2, abi.X2int, o, abi.CommWorld))
		if want := []int32{1, 2, 3, 4}; !slices.Equal(inout, want) {
			t.Errorf("of one rank %v, want %v", inout, want)
		}
		ctest.Must(t, b.Free(OpFree, o))
		if b.Handle != abi.OpNull {
			t.Errorf("a freed operator is %#x", uint(b.Handle))
		}
		ctest.WantError(t, b.Free(OpFree, o), abi.ErrOp, "has been freed")
		ctest.WantError(t, Allreduce(in, p, 2, abi.X2int, o, abi.CommWorld), abi.ErrOp, "MPI_Allreduce: op")
	}
}

// TestVectors checks where blocks with displacements are: the lowest may be before the beginning.
func TestVectors(t *testing.T) {
	mem, p := ints32(0, 1, 2, 3, 4, 5, 6, 7)
	_, counts := ints32(2, 0, 1)
	_, displs := ints32(-3, 1<<30, 1)
	v, err := blocks{p + 16, counts, displs, abi.Int, false}.vector(recvNames, 3)
	if err != nil {
		t.Fatal(err)
	}
	if v.at != uintptr(unsafe.Pointer(&mem[1])) || v.Len() != 20 || !slices.Equal(v.displs, []int{0, 0, 4}) {
		t.Errorf("from %#x, %d bytes, displacements %v; memory at %#x", v.at, v.Len(), v.displs, p)
	}
	for name, x := range map[string]struct {
		counts, displs []int32
		class          int
	}{
		"negative count":   {[]int32{1, -1}, []int32{0, 1}, abi.ErrCount},
		"no counts":        {nil, []int32{0, 1}, abi.ErrArg},
		"no displacements": {[]int32{1, 1}, nil, abi.ErrArg},
	} {
		var c, d uintptr
		if x.counts != nil {
			_, c = ints32(x.counts...)
		}
		if x.displs != nil {
			_, d = ints32(x.displs...)
		}
		if _, err := (blocks{p, c, d, abi.Int, false}).vector(recvNames, 2); cbinding.CodeOf(err) != x.class {
			t.Errorf("%s: %v, want class %d", name, err, x.class)
		}
	}
	long := []int64{1 << 62, 1}
	far := []int64{1 << 62, 0}
	ctest.OnHeap = append(ctest.OnHeap, long, far)
	_, err = blocks{p, uintptr(unsafe.Pointer(&long[0])), uintptr(unsafe.Pointer(&far[0])), abi.Int, true}.vector(recvNames, 2)
	if cbinding.CodeOf(err) != abi.ErrCount {
		t.Errorf("2^62 items at 2^62: %v", err)
	}
	if _, err = (block{p, math.MaxInt / 2, abi.Byte}).times("recvcount", 4); cbinding.CodeOf(err) != abi.ErrCount {
		t.Errorf("4 blocks of half as many items as there can be: %v", err)
	}
}

// Collectives of one rank allocate nothing on the way from C.
func TestCollectivesAllocateNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	_, in := ints32(1, 2, 3, 4)
	_, out := ints32(0, 0, 0, 0)
	for name, call := range map[string]func() int{
		"Barrier":   func() int { return Barrier(abi.CommWorld) },
		"Bcast":     func() int { return Bcast(in, 4, abi.Int, 0, abi.CommWorld) },
		"Allreduce": func() int { return Allreduce(in, out, 4, abi.Int, abi.Sum, abi.CommWorld) },
		"in place":  func() int { return Allreduce(abi.InPlace, out, 4, abi.Int, abi.Max, abi.CommWorld) },
		"Allgather": func() int { return Allgather(in, 4, abi.Int, out, 4, abi.Int, abi.CommWorld) },
		"Alltoall":  func() int { return Alltoall(in, 4, abi.Int, out, 4, abi.Int, abi.CommWorld) },
		"Gather":    func() int { return Gather(in, 4, abi.Int, out, 4, abi.Int, 0, abi.CommWorld) },
		"Scan":      func() int { return Scan(in, out, 4, abi.Int, abi.Sum, abi.CommWorld) },
	} {
		n := testing.AllocsPerRun(200, func() {
			if code := call(); code != 0 {
				t.Errorf("%s: %s", name, cbinding.CodeText(code))
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
