package cbinding

import (
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A datatype is an MPI_Datatype. One that was freed lives on in operations that are not over and in
// the datatypes that were made of it (MPI-4.1, Section 5.1.9).
type datatype struct {
	*mpi.Datatype
	handle     Handle
	predefined bool        // it cannot be freed
	committed  atomic.Bool // also of predefined ones
	attrs      attributes
	made       recipe
}

// A recipe is how a datatype was made: what MPI_Type_get_envelope and MPI_Type_get_contents tell of
// it (MPI-4.1, Section 5.1.13).
type recipe struct {
	combiner  int
	integers  []int
	addresses []int
	counts    []int // in place of integers and addresses, if a _c form made it
	types     []*datatype
}

// typeOf returns the datatype of a handle, whether or not it is committed.
func typeOf(h Handle) (*datatype, error) {
	if t := types.get(h); t != nil {
		return t, nil
	}
	return nil, types.missing(h)
}

// committedType returns the datatype of a handle that a communication call gets.
func committedType(h Handle) (*datatype, error) {
	t, err := typeOf(h)
	if err == nil && !t.committed.Load() {
		return nil, argError(abi.ErrType, "datatype", t.Datatype, "is not committed")
	}
	return t, err
}

// A typeMaker collects what a constructor has: the datatypes of its arguments, and the first error.
type typeMaker struct {
	proc    string
	newtype uintptr // where the handle goes
	err     error
}

// makeType begins a constructor.
func makeType(proc string, newtype uintptr) *typeMaker {
	return &typeMaker{proc, newtype, out("newtype", newtype)}
}

// old returns the datatype of an argument; nil after an error.
func (m *typeMaker) old(h Handle) *datatype {
	if m.err != nil {
		return nil
	}
	var t *datatype
	t, m.err = typeOf(h)
	return t
}

// count checks a number that must not be negative.
func (m *typeMaker) count(name string, n int) int {
	if m.err == nil && n < 0 {
		m.err = negative(name, n)
	}
	return max(n, 0)
}

// ints returns the n integers of an array: MPI_Count or MPI_Aint if wide, else int.
func (m *typeMaker) ints(name string, p uintptr, n int, wide bool) (v []int) {
	if m.err == nil {
		v, m.err = ints(name, p, n, wide)
	}
	return v
}

// lens is ints of lengths, none of which may be negative.
func (m *typeMaker) lens(name string, p uintptr, n int, wide bool) []int {
	v := m.ints(name, p, n, wide)
	for _, x := range v {
		if x < 0 && m.err == nil {
			m.err = argError(abi.ErrArg, name, x, "is negative")
		}
	}
	return v
}

// end makes the datatype, unless an argument was bad, gives it a handle and returns the error code.
func (m *typeMaker) end(made recipe, make func() (*mpi.Datatype, error)) int {
	if m.err == nil {
		var t *mpi.Datatype
		if t, m.err = make(); m.err == nil {
			m.err = (&datatype{Datatype: t, made: made}).publish(m.newtype)
		}
	}
	return fail(m.proc, m.err)
}

// publish gives a new datatype a handle and stores that at p.
func (t *datatype) publish(p uintptr) error {
	h, err := types.put(t)
	if err != nil {
		return err
	}
	t.handle = h
	CacheType(h, t.Size())
	setHandle(p, h)
	return nil
}

// TypeCommit is MPI_Type_commit.
func TypeCommit(datatype uintptr) int {
	const proc = "MPI_Type_commit"
	if err := out("datatype", datatype); err != nil {
		return fail(proc, err)
	}
	t, err := typeOf(*at[Handle](datatype))
	if err == nil {
		t.committed.Store(true)
	}
	return fail(proc, err)
}

// TypeFree is MPI_Type_free.
func TypeFree(datatype uintptr) int {
	const proc = "MPI_Type_free"
	if err := out("datatype", datatype); err != nil {
		return fail(proc, err)
	}
	h := *at[Handle](datatype)
	t, err := typeOf(h)
	if err == nil && t.predefined {
		err = argError(abi.ErrType, "datatype", t.describe(), "is predefined")
	}
	if err == nil {
		err = t.attrs.drop(h)
	}
	if err != nil {
		return fail(proc, err)
	}
	Uncache(h)
	if !types.delete(h) { // another thread was faster
		return fail(proc, types.missing(h))
	}
	setHandle(datatype, abi.DatatypeNull)
	return 0
}

// describe returns the name of t, or what it is.
func (t *datatype) describe() string {
	if name := t.Name(); name != "" {
		return name
	}
	return t.String()
}

// TypeDup is MPI_Type_dup. The duplicate is committed if the original is.
func TypeDup(oldtype Handle, newtype uintptr) int {
	const proc = "MPI_Type_dup"
	if err := out("newtype", newtype); err != nil {
		return fail(proc, err)
	}
	t, err := typeOf(oldtype)
	if err != nil {
		return fail(proc, err)
	}
	d, err := t.Dup()
	if err != nil {
		return fail(proc, err)
	}
	u := &datatype{Datatype: d, made: recipe{combiner: abi.CombinerDup, types: []*datatype{t}}}
	u.committed.Store(t.committed.Load())
	if err := t.attrs.copyTo(&u.attrs, oldtype); err != nil {
		_ = u.attrs.drop(abi.DatatypeNull) // the error of the copy function is the one to tell
		return fail(proc, err)
	}
	return fail(proc, u.publish(newtype))
}

// TypeSetName is MPI_Type_set_name.
func TypeSetName(datatype Handle, name uintptr) int {
	const proc = "MPI_Type_set_name"
	t, err := typeOf(datatype)
	if err != nil {
		return fail(proc, err)
	}
	s, err := objectName("type_name", name)
	if err == nil {
		t.SetName(s)
	}
	return fail(proc, err)
}

// TypeGetName is MPI_Type_get_name.
func TypeGetName(datatype Handle, name, resultlen uintptr) int {
	const proc = "MPI_Type_get_name"
	if datatype == abi.DatatypeNull {
		return fail(proc, setStr(name, resultlen, "MPI_DATATYPE_NULL", abi.MaxObjectName))
	}
	t, err := typeOf(datatype)
	if err == nil {
		err = setStr(name, resultlen, t.Name(), abi.MaxObjectName)
	}
	return fail(proc, err)
}

// objectName returns the string at p, cut to what names of objects may have (MPI-4.1, Section 7.8).
func objectName(parameter string, p uintptr) (string, error) {
	if p == 0 {
		return "", nullError(parameter)
	}
	n := 0
	for n < abi.MaxObjectName-1 && *at[byte](p + uintptr(n)) != 0 {
		n++
	}
	return string(array[byte](p, n)), nil
}
