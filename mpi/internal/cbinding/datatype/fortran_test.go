package datatype

import (
	"runtime"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

// TestParametrizedTypes makes the datatypes of parametrized Fortran types: the sizes are those of the
// kinds that gfortran selects, and the same arguments give the same handle (MPI-4.1, Section 19.1.9).
func TestParametrizedTypes(t *testing.T) {
	ctest.Returning(t)
	real18 := 16 // also where it is REAL(16)
	for _, tt := range []struct {
		name string
		make func(p uintptr) int
		size int
		want string
	}{
		{"real 6", func(p uintptr) int { return TypeCreateF90Real(6, abi.Undefined, p) }, 4, "113 [6 -32766] [] []"},
		{"real 15, 307", func(p uintptr) int { return TypeCreateF90Real(15, 307, p) }, 8, "113 [15 307] [] []"},
		{"real 18", func(p uintptr) int { return TypeCreateF90Real(18, 100, p) }, real18, "113 [18 100] [] []"},
		{"real 33", func(p uintptr) int { return TypeCreateF90Real(33, 4931, p) }, 16, "113 [33 4931] [] []"},
		{"complex 7", func(p uintptr) int { return TypeCreateF90Complex(7, 7, p) }, 16, "114 [7 7] [] []"},
		{"integer 9", func(p uintptr) int { return TypeCreateF90Integer(9, p) }, 4, "115 [9] [] []"},
		{"integer 19", func(p uintptr) int { return TypeCreateF90Integer(19, p) }, 16, "115 [19] [] []"},
	} {
		b := ctest.NewBox()
		ctest.Must(t, tt.make(ctest.Addr(&b.Handle)))
		ctest.Must(t, TypeSize(b.Handle, ctest.Addr(&b.N), false))
		if int(b.N) != tt.size {
			t.Errorf("%s: %d bytes, want %d", tt.name, b.N, tt.size)
		}
		if got := contents(t, b.Handle); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		h := b.Handle
		ctest.Must(t, tt.make(ctest.Addr(&b.Handle)))
		if b.Handle != h {
			t.Errorf("%s: handle %#x, and the second time %#x", tt.name, h, b.Handle)
		}
		if _, err := cbinding.CommittedType(h); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		ctest.WantError(t, b.Free(TypeFree, h), abi.ErrType, "is predefined")
	}
	if name, _ := selectKind(realKinds, 16, 0); (name == "MPI_LONG_DOUBLE") != (runtime.GOARCH == "amd64") {
		t.Errorf("16 digits are in %s", name)
	}
}

// TestMatchSize looks the datatypes of a class and a size up.
func TestMatchSize(t *testing.T) {
	b := ctest.NewBox()
	for key, want := range matched {
		ctest.Must(t, TypeMatchSize(key[0], key[1], ctest.Addr(&b.Handle)))
		ctest.Must(t, TypeSize(b.Handle, ctest.Addr(&b.N), false))
		if b.Handle != want || int(b.N) != key[1] {
			t.Errorf("%v: handle %#x of %d bytes, want %#x", key, b.Handle, b.N, want)
		}
	}
}

// TestValueIndex looks pairs up by their parts (MPI-4.1, Section 6.9.4).
func TestValueIndex(t *testing.T) {
	b := ctest.NewBox()
	for _, tt := range []struct{ value, index, want abi.Handle }{
		{abi.Double, abi.Int, abi.DoubleInt},
		{abi.Int, abi.Int, abi.X2int},
		{abi.LongDouble, abi.Int, abi.LongDoubleInt},
		{abi.Real, abi.Real, abi.X2real},
		{abi.Float, abi.Float, abi.DatatypeNull},
		{abi.CBool, abi.Int, abi.DatatypeNull},
		{abi.Int64T, abi.Int, abi.DatatypeNull},
		{abi.DoubleInt, abi.Int, abi.DatatypeNull},
	} {
		ctest.Must(t, TypeGetValueIndex(tt.value, tt.index, ctest.Addr(&b.Handle)))
		if b.Handle != tt.want {
			t.Errorf("%d and %d: %d, want %d", tt.value, tt.index, b.Handle, tt.want)
		}
	}
}
