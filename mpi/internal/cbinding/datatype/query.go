package datatype

import (
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// TypeSize is MPI_Type_size. A size that does not fit an int becomes MPI_UNDEFINED.
func TypeSize(datatype abi.Handle, size uintptr, large bool) int {
	return typeSize("MPI_Type_size", datatype, size, large)
}

// TypeSizeX is MPI_Type_size_x.
func TypeSizeX(datatype abi.Handle, size uintptr) int {
	return typeSize("MPI_Type_size_x", datatype, size, true)
}

func typeSize(proc string, datatype abi.Handle, size uintptr, large bool) int {
	t, err := cbinding.TypeOf(datatype)
	if err == nil {
		if err = cbinding.Out("size", size); err == nil {
			cbinding.StoreInt(size, t.Size(), large)
		}
	}
	return cbinding.Fail(proc, err)
}

// TypeGetExtent is MPI_Type_get_extent.
func TypeGetExtent(datatype abi.Handle, lb, extent uintptr) int {
	return typeExtent("MPI_Type_get_extent", datatype, lb, extent, false)
}

// TypeGetExtentX is MPI_Type_get_extent_x.
func TypeGetExtentX(datatype abi.Handle, lb, extent uintptr) int {
	return typeExtent("MPI_Type_get_extent_x", datatype, lb, extent, false)
}

// TypeGetTrueExtent is MPI_Type_get_true_extent.
func TypeGetTrueExtent(datatype abi.Handle, lb, extent uintptr) int {
	return typeExtent("MPI_Type_get_true_extent", datatype, lb, extent, true)
}

// TypeGetTrueExtentX is MPI_Type_get_true_extent_x.
func TypeGetTrueExtentX(datatype abi.Handle, lb, extent uintptr) int {
	return typeExtent("MPI_Type_get_true_extent_x", datatype, lb, extent, true)
}

// typeExtent stores a lower bound and an extent, of the data alone if exact. MPI_Aint and MPI_Count are
// as long.
func typeExtent(proc string, datatype abi.Handle, lb, extent uintptr, exact bool) int {
	t, err := cbinding.TypeOf(datatype)
	if err == nil {
		err = cbinding.Out("lb", lb)
	}
	if err == nil {
		err = cbinding.Out("extent", extent)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	from, length := t.Extent()
	if exact {
		from, length = t.TrueExtent()
	}
	cbinding.StoreInt(lb, from, true)
	cbinding.StoreInt(extent, length, true)
	return 0
}

// TypeGetEnvelope is MPI_Type_get_envelope. Its small form refuses datatypes that have large counts.
func TypeGetEnvelope(datatype abi.Handle, integers, addresses, counts, types, combiner uintptr, large bool) int {
	const proc = "MPI_Type_get_envelope"
	t, err := cbinding.TypeOf(datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	r := &t.Made
	if !large && len(r.Counts) > 0 {
		return cbinding.Fail(proc, largeOnly(t))
	}
	for _, x := range []struct {
		name  string
		p     uintptr
		v     int
		large bool
	}{
		{"num_integers", integers, len(r.Integers), large}, {"num_addresses", addresses, len(r.Addresses), large},
		{"num_large_counts", counts, len(r.Counts), large}, {"num_datatypes", types, len(r.Types), large},
		{"combiner", combiner, r.Combiner, false},
	} {
		if x.name == "num_large_counts" && !large {
			continue
		}
		if err := cbinding.Out(x.name, x.p); err != nil {
			return cbinding.Fail(proc, err)
		}
		cbinding.StoreInt(x.p, x.v, x.large)
	}
	return 0
}

// largeOnly returns the error of a small form for a datatype that has large counts.
func largeOnly(t *cbinding.Datatype) error {
	return cbinding.ArgError(abi.ErrType, "datatype", t.Describe(), "has large counts: only the _c form can tell them")
}

// TypeGetContents is MPI_Type_get_contents. Its small form has no room for large counts. Derived
// datatypes among the contents get new handles, which are the caller's to free.
func TypeGetContents(datatype abi.Handle, maxIntegers, maxAddresses, maxCounts, maxTypes int,
	integers, addresses, counts, types uintptr) int {
	const proc = "MPI_Type_get_contents"
	t, err := cbinding.TypeOf(datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	r := &t.Made
	if r.Combiner == abi.CombinerNamed {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrType, "datatype", t.Describe(), "is predefined: it has no contents"))
	}
	if counts == 0 && maxCounts == 0 && len(r.Counts) > 0 {
		return cbinding.Fail(proc, largeOnly(t))
	}
	for _, x := range []struct {
		name string
		max  int
		n    int
		p    uintptr
	}{
		{"integers", maxIntegers, len(r.Integers), integers}, {"addresses", maxAddresses, len(r.Addresses), addresses},
		{"large_counts", maxCounts, len(r.Counts), counts}, {"datatypes", maxTypes, len(r.Types), types},
	} {
		if x.max < x.n {
			return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "max_"+x.name, x.max, "is less than there are"))
		}
		if x.n > 0 && x.p == 0 {
			return cbinding.Fail(proc, cbinding.NullError("array_of_"+x.name))
		}
	}
	_ = cbinding.SetInts(integers, r.Integers, false)
	_ = cbinding.SetInts(addresses, r.Addresses, true)
	_ = cbinding.SetInts(counts, r.Counts, true)
	for i, part := range r.Types {
		if err = part.Reference(types + uintptr(i)*unsafe.Sizeof(abi.Handle(0))); err != nil {
			break
		}
	}
	return cbinding.Fail(proc, err)
}
