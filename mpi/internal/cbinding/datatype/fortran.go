package datatype

import (
	"runtime"
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// parametrized holds the datatypes of parametrized Fortran types, which are predefined without a
// name: the same arguments give the same handle (MPI-4.1, Section 19.1.9). There are fewer than
// 400,000 arguments that are not refused.
var parametrized struct {
	sync.Mutex
	types map[[3]int]*cbinding.Datatype
}

// A fortranKind is a kind of a Fortran type: its decimal digits, its decimal exponent range, and the
// datatype with its layout.
type fortranKind struct {
	digits, exponent int
	name             string
}

// realKinds are the kinds of REAL of gfortran, integerKinds those of INTEGER. In a kind with 18
// digits, which x86 alone has, numbers are those of long double in C.
var (
	realKinds = []fortranKind{{6, 37, "MPI_REAL4"}, {15, 307, "MPI_REAL8"}, {18, 4931, "MPI_LONG_DOUBLE"},
		{33, 4931, "MPI_REAL16"}}
	complexKinds = []fortranKind{{6, 37, "MPI_COMPLEX8"}, {15, 307, "MPI_COMPLEX16"},
		{18, 4931, "MPI_C_LONG_DOUBLE_COMPLEX"}, {33, 4931, "MPI_COMPLEX32"}}
	integerKinds = []fortranKind{{0, 2, "MPI_INTEGER1"}, {0, 4, "MPI_INTEGER2"}, {0, 9, "MPI_INTEGER4"},
		{0, 18, "MPI_INTEGER8"}, {0, 38, "MPI_INTEGER16"}}
)

// selectKind returns the name of the datatype of the smallest kind with p digits and an exponent range
// of r: what SELECTED_REAL_KIND and SELECTED_INT_KIND choose.
func selectKind(kinds []fortranKind, p, r int) (string, bool) {
	for _, k := range kinds {
		extended := k.digits == 18
		if k.digits >= p && k.exponent >= r && (!extended || runtime.GOARCH == "amd64") {
			return k.name, true
		}
	}
	return "", false
}

// createF90 stores the handle of a parametrized type. p and r may be MPI_UNDEFINED, but not both.
func createF90(proc string, combiner int, kinds []fortranKind, p, r int, newtype uintptr) int {
	if err := cbinding.Out("newtype", newtype); err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.SetHandle(newtype, abi.DatatypeNull)
	integers := []int{p, r}
	if combiner == abi.CombinerF90Integer {
		integers = []int{r}
	}
	name, ok := "", p != abi.Undefined || r != abi.Undefined
	if ok {
		name, ok = selectKind(kinds, orNone(p), orNone(r))
	}
	if !ok || p < 0 && p != abi.Undefined || r < 0 && r != abi.Undefined {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "p and r", integers, "are those of no Fortran kind"))
	}
	return cbinding.Fail(proc, publishF90([3]int{combiner, p, r}, name, integers, newtype))
}

// publishF90 stores the handle of the parametrized type with a name, which is made once.
func publishF90(key [3]int, name string, integers []int, newtype uintptr) error {
	parametrized.Lock()
	defer parametrized.Unlock()
	if t := parametrized.types[key]; t != nil {
		cbinding.SetHandle(newtype, t.Handle)
		return nil
	}
	d, err := mpi.NamedType(name)
	if err == nil {
		d, err = d.Dup()
	}
	if err != nil {
		return err
	}
	t := &cbinding.Datatype{Datatype: d, IsPredefined: true, Made: cbinding.Recipe{Combiner: key[0], Integers: integers}}
	t.Committed.Store(true)
	if err := t.Publish(newtype); err != nil {
		return err
	}
	if parametrized.types == nil {
		parametrized.types = make(map[[3]int]*cbinding.Datatype)
	}
	parametrized.types[key] = t
	return nil
}

// orNone returns n, or 0 for MPI_UNDEFINED.
func orNone(n int) int {
	if n == abi.Undefined {
		return 0
	}
	return n
}

// TypeCreateF90Real is MPI_Type_create_f90_real.
func TypeCreateF90Real(p, r int, newtype uintptr) int {
	return createF90("MPI_Type_create_f90_real", abi.CombinerF90Real, realKinds, p, r, newtype)
}

// TypeCreateF90Complex is MPI_Type_create_f90_complex.
func TypeCreateF90Complex(p, r int, newtype uintptr) int {
	return createF90("MPI_Type_create_f90_complex", abi.CombinerF90Complex, complexKinds, p, r, newtype)
}

// TypeCreateF90Integer is MPI_Type_create_f90_integer.
func TypeCreateF90Integer(r int, newtype uintptr) int {
	return createF90("MPI_Type_create_f90_integer", abi.CombinerF90Integer, integerKinds, abi.Undefined, r, newtype)
}

// matched lists the datatypes that MPI_Type_match_size returns, by class and size.
var matched = map[[2]int]abi.Handle{
	{abi.TypeclassInteger, 1}: abi.Integer1, {abi.TypeclassInteger, 2}: abi.Integer2,
	{abi.TypeclassInteger, 4}: abi.Integer4, {abi.TypeclassInteger, 8}: abi.Integer8,
	{abi.TypeclassInteger, 16}: abi.Integer16,
	{abi.TypeclassReal, 2}:     abi.Real2, {abi.TypeclassReal, 4}: abi.Real4,
	{abi.TypeclassReal, 8}: abi.Real8, {abi.TypeclassReal, 16}: abi.Real16,
	{abi.TypeclassComplex, 4}: abi.Complex4, {abi.TypeclassComplex, 8}: abi.Complex8,
	{abi.TypeclassComplex, 16}: abi.Complex16, {abi.TypeclassComplex, 32}: abi.Complex32,
}

// TypeMatchSize is MPI_Type_match_size.
func TypeMatchSize(typeclass, size int, datatype uintptr) int {
	const proc = "MPI_Type_match_size"
	if err := cbinding.Out("datatype", datatype); err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.SetHandle(datatype, abi.DatatypeNull)
	switch typeclass {
	case abi.TypeclassInteger, abi.TypeclassReal, abi.TypeclassComplex:
	default:
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "typeclass", typeclass, "is no class of types"))
	}
	h, ok := matched[[2]int{typeclass, size}]
	if !ok {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "size", size, "is that of no datatype of the class"))
	}
	cbinding.SetHandle(datatype, h)
	return 0
}
