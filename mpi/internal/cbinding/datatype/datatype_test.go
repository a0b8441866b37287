package datatype

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

// newtype calls a constructor and commits what it makes.
func newtype(t *testing.T, construct func(newtype uintptr) int) abi.Handle {
	t.Helper()
	b := ctest.NewBox()
	ctest.Must(t, construct(ctest.Addr(&b.Handle)))
	ctest.Must(t, TypeCommit(ctest.Addr(&b.Handle)))
	return b.Handle
}

// contents returns what the envelope and the contents of a datatype say, of the large form if it has
// large counts. Datatypes are predefined, or shown as a *.
func contents(t *testing.T, h abi.Handle) string {
	t.Helper()
	b := ctest.NewBox()
	n := cbinding.Array[int64](ctest.Heap(make([]int64, 4)...), 4)
	p := ctest.Addr(&n[0])
	ctest.Must(t, TypeGetEnvelope(h, p, p+8, p+16, p+24, ctest.Addr(&b.N), true))
	ints, addrs := ctest.Heap(make([]int32, n[0]+1)...), ctest.Heap(make([]int64, n[1]+1)...)
	counts, types := ctest.Heap(make([]int64, n[2]+1)...), ctest.Heap(make([]abi.Handle, n[3]+1)...)
	ctest.Must(t, TypeGetContents(h, int(n[0]), int(n[1]), int(n[2]), int(n[3]), ints, addrs, counts, types))
	s := fmt.Sprint(b.N, cbinding.Array[int32](ints, int(n[0])), cbinding.Array[int64](addrs, int(n[1])), cbinding.Array[int64](counts, int(n[2])))
	for _, part := range cbinding.Array[abi.Handle](types, int(n[3])) {
		if part < abi.MaxPredefined {
			s += fmt.Sprintf(" %d", part)
			continue
		}
		s += " *"
		ctest.Must(t, b.Free(TypeFree, part))
	}
	return s
}

// TestContentsOfC makes datatypes with each constructor in both forms, and compares what their
// contents say with MPI-4.1, Section 5.1.13.
func TestContentsOfC(t *testing.T) {
	live := cbinding.CountHandles("datatype")
	three := newtype(t, func(p uintptr) int { return TypeVector(3, 2, -4, abi.Int, p, false) })
	lens, wide := ctest.Heap[int32](1, 0, 2), ctest.Heap[int64](1, 0, 2)
	displs, far := ctest.Heap[int32](5, 2, -7), ctest.Heap[int64](40, 16, -56)
	list := ctest.Heap[abi.Handle](abi.Int, three, abi.Char)
	sizes, sub, starts := ctest.Heap[int32](4, 6), ctest.Heap[int32](2, 3), ctest.Heap[int32](1, 0)
	sizes64, sub64, starts64 := ctest.Heap[int64](4, 6), ctest.Heap[int64](2, 3), ctest.Heap[int64](1, 0)
	dists, dargs := ctest.Heap[int32](abi.DistributeBlock, abi.DistributeCyclic), ctest.Heap[int32](abi.DistributeDfltDarg, 2)
	grid := ctest.Heap[int32](2, 1)
	for _, tt := range []struct {
		name string
		make func(p uintptr) int
		want string
	}{
		{"contiguous", func(p uintptr) int { return TypeContiguous(7, three, p, false) }, "103 [7] [] [] *"},
		{"contiguous large", func(p uintptr) int { return TypeContiguous(7, abi.Int, p, true) }, "103 [] [] [7] 521"},
		{"vector", func(p uintptr) int { return TypeVector(2, 3, 4, abi.Int, p, false) }, "104 [2 3 4] [] [] 521"},
		{"vector large", func(p uintptr) int { return TypeVector(2, 3, 4, abi.Int, p, true) }, "104 [] [] [2 3 4] 521"},
		{"hvector", func(p uintptr) int { return TypeCreateHvector(2, 3, 44, three, p, false) }, "105 [2 3] [44] [] *"},
		{"hvector large", func(p uintptr) int { return TypeCreateHvector(2, 3, 44, three, p, true) },
			"105 [] [] [2 3 44] *"},
		{"indexed", func(p uintptr) int { return TypeIndexed(3, lens, displs, abi.Int, p, false) },
			"106 [3 1 0 2 5 2 -7] [] [] 521"},
		{"indexed large", func(p uintptr) int { return TypeIndexed(3, wide, far, abi.Int, p, true) },
			"106 [] [] [3 1 0 2 40 16 -56] 521"},
		{"hindexed", func(p uintptr) int { return TypeCreateHindexed(3, lens, far, abi.Int, p, false) },
			"107 [3 1 0 2] [40 16 -56] [] 521"},
		{"hindexed large", func(p uintptr) int { return TypeCreateHindexed(3, wide, far, abi.Int, p, true) },
			"107 [] [] [3 1 0 2 40 16 -56] 521"},
		{"indexed block", func(p uintptr) int { return TypeCreateIndexedBlock(3, 2, displs, abi.Int, p, false) },
			"108 [3 2 5 2 -7] [] [] 521"},
		{"indexed block large", func(p uintptr) int { return TypeCreateIndexedBlock(3, 2, far, abi.Int, p, true) },
			"108 [] [] [3 2 40 16 -56] 521"},
		{"hindexed block", func(p uintptr) int { return TypeCreateHindexedBlock(3, 2, far, abi.Int, p, false) },
			"109 [3 2] [40 16 -56] [] 521"},
		{"hindexed block large", func(p uintptr) int { return TypeCreateHindexedBlock(3, 2, far, abi.Int, p, true) },
			"109 [] [] [3 2 40 16 -56] 521"},
		{"struct", func(p uintptr) int { return TypeCreateStruct(3, lens, far, list, p, false) },
			"110 [3 1 0 2] [40 16 -56] [] 521 * 579"},
		{"struct large", func(p uintptr) int { return TypeCreateStruct(3, wide, far, list, p, true) },
			"110 [] [] [3 1 0 2 40 16 -56] 521 * 579"},
		{"subarray", func(p uintptr) int {
			return TypeCreateSubarray(2, sizes, sub, starts, abi.OrderFortran, abi.Int, p, false)
		},
			"111 [2 4 6 2 3 1 0 15] [] [] 521"},
		{"subarray large", func(p uintptr) int {
			return TypeCreateSubarray(2, sizes64, sub64, starts64, abi.OrderC, abi.Int, p, true)
		},
			"111 [2 12] [] [4 6 2 3 1 0] 521"},
		{"darray", func(p uintptr) int {
			return TypeCreateDarray(2, 1, 2, sizes, dists, dargs, grid, abi.OrderC, abi.Int, p, false)
		}, "112 [2 1 2 4 6 17 18 19 2 2 1 12] [] [] 521"},
		{"darray large", func(p uintptr) int {
			return TypeCreateDarray(2, 1, 2, sizes64, dists, dargs, grid, abi.OrderC, abi.Int, p, true)
		}, "112 [2 1 2 17 18 19 2 2 1 12] [] [4 6] 521"},
		{"resized", func(p uintptr) int { return TypeCreateResized(three, -8, 99, p, false) }, "116 [] [-8 99] [] *"},
		{"resized large", func(p uintptr) int { return TypeCreateResized(three, -8, 99, p, true) }, "116 [] [] [-8 99] *"},
		{"dup", func(p uintptr) int { return TypeDup(three, p) }, "102 [] [] [] *"},
	} {
		h := newtype(t, tt.make)
		if got := contents(t, h); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		ctest.Must(t, ctest.NewBox().Free(TypeFree, h))
	}
	ctest.Must(t, ctest.NewBox().Free(TypeFree, three))
	if cbinding.CountHandles("datatype") != live {
		t.Errorf("%d datatypes are left", cbinding.CountHandles("datatype")-live)
	}
}

// TestFreedTypeLivesOn frees a datatype that another is made of, and that a buffer has.
func TestFreedTypeLivesOn(t *testing.T) {
	ctest.Returning(t)
	part := newtype(t, func(p uintptr) int { return TypeVector(2, 1, 2, abi.Int, p, false) })
	all := newtype(t, func(p uintptr) int { return TypeContiguous(2, part, p, false) })
	data := ctest.Heap[int32](1, 2, 3, 4, 5, 6)
	b, err := cbinding.BufferOf(data, 1, part)
	if err != nil {
		t.Fatal(err)
	}
	box := ctest.NewBox()
	ctest.Must(t, box.Free(TypeFree, part))
	if box.Handle != abi.DatatypeNull {
		t.Errorf("handle %#x after MPI_Type_free", box.Handle)
	}
	if packed, err := b.AppendPacked(nil); err != nil || len(packed) != 8 {
		t.Errorf("%d bytes of a freed datatype, %v", len(packed), err)
	}
	if got := contents(t, all); got != "103 [2] [] [] *" {
		t.Errorf("made of a freed datatype: %s", got)
	}
	ctest.WantError(t, TypeSize(part, ctest.Addr(&box.N), false), abi.ErrType, "has been freed")
	ctest.WantError(t, box.Free(TypeFree, abi.Int), abi.ErrType, "MPI_INT: is predefined")
	ctest.Must(t, box.Free(TypeFree, all))
}

// TestBoundsOfC asks for the size and the bounds of datatypes, also of sizes that do not fit an int.
func TestBoundsOfC(t *testing.T) {
	b := ctest.NewBox()
	lbExtent := func(f func(abi.Handle, uintptr, uintptr) int, h abi.Handle) string {
		p := ctest.Heap[int64](99, 99)
		ctest.Must(t, f(h, p, p+8))
		return fmt.Sprint(cbinding.Array[int64](p, 2))
	}
	pair := abi.Handle(abi.DoubleInt)
	if a, e := lbExtent(TypeGetExtent, pair), lbExtent(TypeGetTrueExtentX, pair); a != "[0 16]" || e != "[0 12]" {
		t.Errorf("MPI_DOUBLE_INT: %s and %s", a, e)
	}
	back := newtype(t, func(p uintptr) int { return TypeCreateHvector(3, 1, -8, abi.Int, p, false) })
	if a, e := lbExtent(TypeGetExtentX, back), lbExtent(TypeGetTrueExtent, back); a != "[-16 20]" || e != a {
		t.Errorf("backward vector: %s and %s", a, e)
	}
	if bits.UintSize == 32 {
		t.Skip("the ABI has 64 bits")
	}
	count := 1 << (bits.UintSize/2 - 1)
	huge := newtype(t, func(p uintptr) int { return TypeContiguous(count, abi.Int, p, true) })
	ctest.Must(t, TypeSize(huge, ctest.Addr(&b.N), false))
	ctest.Must(t, TypeSizeX(huge, ctest.Addr(&b.Long)))
	if b.N != abi.Undefined || b.Long != 1<<33 {
		t.Errorf("sizes %d and %d, want MPI_UNDEFINED and 8 GiB", b.N, b.Long)
	}
	ctest.Must(t, TypeSize(huge, ctest.Addr(&b.Long), true))
	if b.Long != 1<<33 {
		t.Errorf("size %d, want 8 GiB", b.Long)
	}
	ctest.Must(t, b.Free(TypeFree, back))
	ctest.Must(t, b.Free(TypeFree, huge))
}

// TestTypeNames sets and gets names, and cuts one that is too long (MPI-4.1, Section 7.8).
func TestTypeNames(t *testing.T) {
	b := ctest.NewBox()
	ctest.Must(t, TypeGetName(abi.DatatypeNull, ctest.Addr(&b.Text[0]), ctest.Addr(&b.N)))
	if got := string(b.Text[:b.N]); got != "MPI_DATATYPE_NULL" {
		t.Errorf("name of the null handle: %q", got)
	}
	ctest.Must(t, TypeGetName(abi.LongDoubleInt, ctest.Addr(&b.Text[0]), ctest.Addr(&b.N)))
	if b.String() != "MPI_LONG_DOUBLE_INT" || int(b.N) != len(b.String()) {
		t.Errorf("%q of %d characters", b.String(), b.N)
	}
	h := newtype(t, func(p uintptr) int { return TypeContiguous(2, abi.Int, p, false) })
	ctest.Must(t, TypeGetName(h, ctest.Addr(&b.Text[0]), ctest.Addr(&b.N)))
	if b.String() != "" || b.N != 0 {
		t.Errorf("a new datatype is called %q", b.String())
	}
	ctest.Must(t, TypeSetName(h, ctest.CString(strings.Repeat("x", 500))))
	ctest.Must(t, TypeGetName(h, ctest.Addr(&b.Text[0]), ctest.Addr(&b.N)))
	if b.N != abi.MaxObjectName-1 || len(b.String()) != abi.MaxObjectName-1 {
		t.Errorf("a name of %d and %d characters", b.N, len(b.String()))
	}
	ctest.Must(t, b.Free(TypeFree, h))
}

// TestTypeErrors gives bad arguments to all functions of datatypes.
func TestTypeErrors(t *testing.T) {
	ctest.Returning(t)
	b := ctest.NewBox()
	p, h := ctest.Addr(&b.Handle), abi.Handle(abi.Int)
	two, bad := ctest.Heap[int32](1, 1), ctest.Heap[int32](1, -1)
	one := ctest.Heap[int32](1)
	blocks, grid := ctest.Heap[int32](abi.DistributeBlock), ctest.Heap[int32](2)
	raw := ctest.NewBox()
	ctest.Must(t, TypeContiguous(2, abi.Int, ctest.Addr(&raw.Handle), false))
	large := newtype(t, func(p uintptr) int { return TypeContiguous(2, abi.Int, p, true) })
	for _, tt := range []struct {
		name  string
		code  int
		class int
		text  string
	}{
		{"count", TypeContiguous(-1, h, p, false), abi.ErrCount, "count -1: is negative"},
		{"null result", TypeContiguous(1, h, 0, false), abi.ErrArg, "newtype NULL"},
		{"null type", TypeContiguous(1, abi.DatatypeNull, p, false), abi.ErrType, "null handle"},
		{"communicator", TypeVector(1, 1, 1, abi.CommWorld, p, false), abi.ErrType, "is the handle of a communicator"},
		{"block length", TypeVector(1, -2, 1, h, p, false), abi.ErrArg, "blocklength -2"},
		{"block lengths", TypeIndexed(2, bad, two, h, p, false), abi.ErrArg, "array_of_blocklengths -1"},
		{"null lengths", TypeIndexed(2, 0, two, h, p, false), abi.ErrArg, "array_of_blocklengths NULL"},
		{"null displacements", TypeCreateHindexed(2, two, 0, h, p, false), abi.ErrArg, "array_of_displacements NULL"},
		{"null types", TypeCreateStruct(1, one, ctest.Heap[int64](0), 0, p, false), abi.ErrArg, "array_of_types NULL"},
		{"struct of a null type", TypeCreateStruct(1, one, ctest.Heap[int64](0), ctest.Heap[abi.Handle](abi.DatatypeNull), p, false),
			abi.ErrType, "null handle"},
		{"stride", TypeVector(2, 1, math.MaxInt, h, p, true), abi.ErrType, "MPI_Type_vector"},
		{"dimensions", TypeCreateSubarray(0, one, one, one, abi.OrderC, h, p, false), abi.ErrArg, "ndims 0"},
		{"order", TypeCreateSubarray(1, one, one, ctest.Heap[int32](0), 7, h, p, false), abi.ErrArg, "order 7"},
		{"start", TypeCreateSubarray(1, one, one, one, abi.OrderC, h, p, false),
			abi.ErrArg, "array_of_starts 1: is greater than 0"},
		{"rank", TypeCreateDarray(2, 2, 1, two, blocks, one, grid, abi.OrderC, h, p, false),
			abi.ErrArg, "rank 2"},
		{"grid", TypeCreateDarray(4, 0, 1, two, blocks, one, grid, abi.OrderC, h, p, false),
			abi.ErrArg, "array_of_psizes"},
		{"distribution", TypeCreateDarray(2, 0, 1, two, ctest.Heap[int32](3), one, grid, abi.OrderC, h, p, false),
			abi.ErrArg, "array_of_distribs 3"},
		{"extent", TypeGetExtent(h, p, 0), abi.ErrArg, "extent NULL"},
		{"envelope of large counts", TypeGetEnvelope(large, p, p, 0, p, ctest.Addr(&b.N), false), abi.ErrType, "large counts"},
		{"contents of large counts", TypeGetContents(large, 9, 9, 0, 9, p, p, 0, p), abi.ErrType, "large counts"},
		{"contents of a predefined one", TypeGetContents(h, 9, 9, 9, 9, p, p, p, p), abi.ErrType, "is predefined"},
		{"room for contents", TypeGetContents(raw.Handle, 0, 0, 0, 1, p, p, 0, p), abi.ErrArg, "max_integers 0"},
		{"uncommitted", Pack(two, 1, raw.Handle, one, 4, ctest.Addr(&b.N), abi.CommSelf, false), abi.ErrType, "is not committed"},
		{"no kind", TypeCreateF90Real(50, 3, p), abi.ErrArg, "[50 3]"},
		{"no numbers", TypeCreateF90Complex(abi.Undefined, abi.Undefined, p), abi.ErrArg, "no Fortran kind"},
		{"no size", TypeMatchSize(abi.TypeclassReal, 3, p), abi.ErrArg, "size 3"},
		{"no class", TypeMatchSize(3, 4, p), abi.ErrArg, "typeclass 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.code != tt.class {
				t.Errorf("code %d: %s, want %s", tt.code, cbinding.CodeText(tt.code), cbinding.ClassText(tt.class))
			}
		})
	}
	ctest.WantError(t, TypeContiguous(-1, h, p, false), abi.ErrCount, "MPI_Type_contiguous: count -1: is negative")
	ctest.Must(t, raw.Free(TypeFree, raw.Handle))
	ctest.Must(t, raw.Free(TypeFree, large))
}
