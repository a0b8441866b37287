package cbinding

import (
	"slices"
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A Datatype is an MPI_Datatype. One that was freed lives on in operations that are not over and in
// the datatypes that were made of it (MPI-4.1, Section 5.1.9).
type Datatype struct {
	*mpi.Datatype
	Handle       abi.Handle
	IsPredefined bool        // it cannot be freed
	Committed    atomic.Bool // also of predefined ones
	Attrs        Attributes
	Made         Recipe
}

// A Recipe is how a datatype was made: what MPI_Type_get_envelope and MPI_Type_get_contents tell of
// it (MPI-4.1, Section 5.1.13).
type Recipe struct {
	Combiner  int
	Integers  []int
	Addresses []int
	Counts    []int // in place of integers and addresses, if a _c form made it
	Types     []*Datatype
}

// TypeOf returns the datatype of a handle, whether or not it is committed.
func TypeOf(h abi.Handle) (*Datatype, error) {
	if t := Types.Get(h); t != nil {
		return t, nil
	}
	return nil, Types.Missing(h)
}

// CommittedType returns the datatype of a handle that a communication call gets.
func CommittedType(h abi.Handle) (*Datatype, error) {
	t, err := TypeOf(h)
	if err == nil && !t.Committed.Load() {
		return nil, ArgError(abi.ErrType, "datatype", HandleName(h), "is not committed")
	}
	return t, err
}

// Publish gives a new datatype a handle and stores that at p.
func (t *Datatype) Publish(p uintptr) error {
	h, err := Types.Put(t)
	if err != nil {
		return err
	}
	t.Handle = h
	CacheType(h, t.Size())
	SetHandle(p, h)
	return nil
}

// Describe returns the name of t, or what it is.
func (t *Datatype) Describe() string {
	if name := t.Name(); name != "" {
		return name
	}
	return t.String()
}

// Reference stores a handle of t at p: its own if it is predefined, else that of a new datatype made
// in the same way.
func (t *Datatype) Reference(p uintptr) error {
	if t.IsPredefined {
		SetHandle(p, t.Handle)
		return nil
	}
	d, err := t.Datatype.Dup()
	if err != nil {
		return err
	}
	u := &Datatype{Datatype: d, Made: t.Made}
	u.Committed.Store(t.Committed.Load())
	return u.Publish(p)
}

// Numbers sets the integers and addresses that a constructor was given; of a _c form both are large
// counts.
func (r *Recipe) Numbers(large bool, integers, addresses []int) {
	if large {
		r.Counts = slices.Concat(integers, addresses)
		return
	}
	r.Integers, r.Addresses = integers, addresses
}
