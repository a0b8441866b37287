package datatype

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A typeMaker collects what a constructor has: the datatypes of its arguments, and the first error.
type typeMaker struct {
	proc    string
	newtype uintptr // where the handle goes
	err     error
}

// makeType begins a constructor.
func makeType(proc string, newtype uintptr) *typeMaker {
	return &typeMaker{proc, newtype, cbinding.Out("newtype", newtype)}
}

// old returns the datatype of an argument; nil after an error.
func (m *typeMaker) old(h abi.Handle) *cbinding.Datatype {
	if m.err != nil {
		return nil
	}
	var t *cbinding.Datatype
	t, m.err = cbinding.TypeOf(h)
	return t
}

// count checks a number that must not be negative.
func (m *typeMaker) count(name string, n int) int {
	if m.err == nil && n < 0 {
		m.err = cbinding.Negative(name, n)
	}
	return max(n, 0)
}

// ints returns the n integers of an array: MPI_Count or MPI_Aint if wide, else int.
func (m *typeMaker) ints(name string, p uintptr, n int, wide bool) (v []int) {
	if m.err == nil {
		v, m.err = cbinding.Ints(name, p, n, wide)
	}
	return v
}

// lens is ints of lengths, none of which may be negative.
func (m *typeMaker) lens(name string, p uintptr, n int, wide bool) []int {
	v := m.ints(name, p, n, wide)
	for _, x := range v {
		if x < 0 && m.err == nil {
			m.err = cbinding.ArgError(abi.ErrArg, name, x, "is negative")
		}
	}
	return v
}

// end makes the datatype, unless an argument was bad, gives it a handle and returns the error code.
func (m *typeMaker) end(made cbinding.Recipe, make func() (*mpi.Datatype, error)) int {
	if m.err == nil {
		var t *mpi.Datatype
		if t, m.err = make(); m.err == nil {
			m.err = (&cbinding.Datatype{Datatype: t, Made: made}).Publish(m.newtype)
		}
	}
	if m.err != nil {
		cbinding.NullHandle(m.newtype, abi.DatatypeNull)
	}
	return cbinding.Fail(m.proc, m.err)
}

// TypeCommit is MPI_Type_commit.
func TypeCommit(datatype uintptr) int {
	const proc = "MPI_Type_commit"
	if err := cbinding.Out("datatype", datatype); err != nil {
		return cbinding.Fail(proc, err)
	}
	t, err := cbinding.TypeOf(*cbinding.At[abi.Handle](datatype))
	if err == nil {
		t.Committed.Store(true)
	}
	return cbinding.Fail(proc, err)
}

// TypeFree is MPI_Type_free.
func TypeFree(datatype uintptr) int {
	const proc = "MPI_Type_free"
	if err := cbinding.Out("datatype", datatype); err != nil {
		return cbinding.Fail(proc, err)
	}
	h := *cbinding.At[abi.Handle](datatype)
	t, err := cbinding.TypeOf(h)
	if err == nil && t.IsPredefined {
		err = cbinding.ArgError(abi.ErrType, "datatype", t.Describe(), "is predefined")
	}
	if err == nil {
		err = t.Attrs.Drop(h)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.Uncache(h)
	if !cbinding.Types.Delete(h) { // another thread was faster
		return cbinding.Fail(proc, cbinding.Types.Missing(h))
	}
	cbinding.SetHandle(datatype, abi.DatatypeNull)
	return 0
}

// TypeDup is MPI_Type_dup. The duplicate is committed if the original is.
func TypeDup(oldtype abi.Handle, newtype uintptr) int {
	const proc = "MPI_Type_dup"
	if err := cbinding.Out("newtype", newtype); err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.SetHandle(newtype, abi.DatatypeNull)
	t, err := cbinding.TypeOf(oldtype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	d, err := t.Dup()
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	u := &cbinding.Datatype{Datatype: d, Made: cbinding.Recipe{Combiner: abi.CombinerDup, Types: []*cbinding.Datatype{t}}}
	u.Committed.Store(t.Committed.Load())
	if err := t.Attrs.CopyTo(&u.Attrs, oldtype); err != nil {
		_ = u.Attrs.Drop(abi.DatatypeNull) // the error of the copy function is the one to tell
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, u.Publish(newtype))
}

// TypeSetName is MPI_Type_set_name.
func TypeSetName(datatype abi.Handle, name uintptr) int {
	const proc = "MPI_Type_set_name"
	t, err := cbinding.TypeOf(datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	s, err := cbinding.ObjectName("type_name", name)
	if err == nil {
		t.SetName(s)
	}
	return cbinding.Fail(proc, err)
}

// TypeGetName is MPI_Type_get_name.
func TypeGetName(datatype abi.Handle, name, resultlen uintptr) int {
	const proc = "MPI_Type_get_name"
	if datatype == abi.DatatypeNull {
		return cbinding.Fail(proc, cbinding.SetStr(name, resultlen, "MPI_DATATYPE_NULL", abi.MaxObjectName))
	}
	t, err := cbinding.TypeOf(datatype)
	if err == nil {
		err = cbinding.SetStr(name, resultlen, t.Name(), abi.MaxObjectName)
	}
	return cbinding.Fail(proc, err)
}
