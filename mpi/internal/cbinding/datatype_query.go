package cbinding

import (
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// TypeSize is MPI_Type_size. A size that does not fit an int becomes MPI_UNDEFINED.
func TypeSize(datatype Handle, size uintptr, large bool) int {
	return typeSize("MPI_Type_size", datatype, size, large)
}

// TypeSizeX is MPI_Type_size_x.
func TypeSizeX(datatype Handle, size uintptr) int {
	return typeSize("MPI_Type_size_x", datatype, size, true)
}

func typeSize(proc string, datatype Handle, size uintptr, large bool) int {
	t, err := typeOf(datatype)
	if err == nil {
		if err = out("size", size); err == nil {
			storeInt(size, t.Size(), large)
		}
	}
	return fail(proc, err)
}

// TypeGetExtent is MPI_Type_get_extent.
func TypeGetExtent(datatype Handle, lb, extent uintptr) int {
	return typeExtent("MPI_Type_get_extent", datatype, lb, extent, false)
}

// TypeGetExtentX is MPI_Type_get_extent_x.
func TypeGetExtentX(datatype Handle, lb, extent uintptr) int {
	return typeExtent("MPI_Type_get_extent_x", datatype, lb, extent, false)
}

// TypeGetTrueExtent is MPI_Type_get_true_extent.
func TypeGetTrueExtent(datatype Handle, lb, extent uintptr) int {
	return typeExtent("MPI_Type_get_true_extent", datatype, lb, extent, true)
}

// TypeGetTrueExtentX is MPI_Type_get_true_extent_x.
func TypeGetTrueExtentX(datatype Handle, lb, extent uintptr) int {
	return typeExtent("MPI_Type_get_true_extent_x", datatype, lb, extent, true)
}

// typeExtent stores a lower bound and an extent, of the data alone if exact. MPI_Aint and MPI_Count are
// as long.
func typeExtent(proc string, datatype Handle, lb, extent uintptr, exact bool) int {
	t, err := typeOf(datatype)
	if err == nil {
		err = out("lb", lb)
	}
	if err == nil {
		err = out("extent", extent)
	}
	if err != nil {
		return fail(proc, err)
	}
	from, length := t.Extent()
	if exact {
		from, length = t.TrueExtent()
	}
	storeInt(lb, from, true)
	storeInt(extent, length, true)
	return 0
}

// TypeGetEnvelope is MPI_Type_get_envelope. Its small form refuses datatypes that have large counts.
func TypeGetEnvelope(datatype Handle, integers, addresses, counts, types, combiner uintptr, large bool) int {
	const proc = "MPI_Type_get_envelope"
	t, err := typeOf(datatype)
	if err != nil {
		return fail(proc, err)
	}
	r := &t.made
	if !large && len(r.counts) > 0 {
		return fail(proc, largeOnly(t))
	}
	for _, x := range []struct {
		name  string
		p     uintptr
		v     int
		large bool
	}{
		{"num_integers", integers, len(r.integers), large}, {"num_addresses", addresses, len(r.addresses), large},
		{"num_large_counts", counts, len(r.counts), large}, {"num_datatypes", types, len(r.types), large},
		{"combiner", combiner, r.combiner, false},
	} {
		if x.name == "num_large_counts" && !large {
			continue
		}
		if err := out(x.name, x.p); err != nil {
			return fail(proc, err)
		}
		storeInt(x.p, x.v, x.large)
	}
	return 0
}

// largeOnly returns the error of a small form for a datatype that has large counts.
func largeOnly(t *datatype) error {
	return argError(abi.ErrType, "datatype", t.describe(), "has large counts: only the _c form can tell them")
}

// TypeGetContents is MPI_Type_get_contents. Its small form has no room for large counts. Derived
// datatypes among the contents get new handles, which are the caller's to free.
func TypeGetContents(datatype Handle, maxIntegers, maxAddresses, maxCounts, maxTypes int,
	integers, addresses, counts, types uintptr) int {
	const proc = "MPI_Type_get_contents"
	t, err := typeOf(datatype)
	if err != nil {
		return fail(proc, err)
	}
	r := &t.made
	if r.combiner == abi.CombinerNamed {
		return fail(proc, argError(abi.ErrType, "datatype", t.describe(), "is predefined: it has no contents"))
	}
	if counts == 0 && maxCounts == 0 && len(r.counts) > 0 {
		return fail(proc, largeOnly(t))
	}
	for _, x := range []struct {
		name string
		max  int
		n    int
		p    uintptr
	}{
		{"integers", maxIntegers, len(r.integers), integers}, {"addresses", maxAddresses, len(r.addresses), addresses},
		{"large_counts", maxCounts, len(r.counts), counts}, {"datatypes", maxTypes, len(r.types), types},
	} {
		if x.max < x.n {
			return fail(proc, argError(abi.ErrArg, "max_"+x.name, x.max, "is less than there are"))
		}
		if x.n > 0 && x.p == 0 {
			return fail(proc, nullError("array_of_"+x.name))
		}
	}
	_ = setInts(integers, r.integers, false)
	_ = setInts(addresses, r.addresses, true)
	_ = setInts(counts, r.counts, true)
	for i, part := range r.types {
		if err = part.reference(types + uintptr(i)*unsafe.Sizeof(Handle(0))); err != nil {
			break
		}
	}
	return fail(proc, err)
}

// reference stores a handle of t at p: its own if it is predefined, else that of a new datatype made
// in the same way.
func (t *datatype) reference(p uintptr) error {
	if t.predefined {
		setHandle(p, t.handle)
		return nil
	}
	d, err := t.Datatype.Dup()
	if err != nil {
		return err
	}
	u := &datatype{Datatype: d, made: t.made}
	u.committed.Store(t.committed.Load())
	return u.publish(p)
}
