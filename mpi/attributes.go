package mpi

import (
	"fmt"
	"slices"
	"sync"
)

// Attributed is what attributes can be attached to: a *Comm, a *Win or a
// *Datatype (MPI-4.1, Section 7.7).
type Attributed interface{ attributes() *attributes }

// A Key names an attribute and its type (MPI_Comm_create_keyval). Keys are
// compared by address; there is nothing to free.
type Key[T any] struct {
	copy func(from Attributed, v T) (T, bool, error)
	drop func(from Attributed, v T)
}

// NewKey makes a key (MPI_Comm_create_keyval, MPI_Type_create_keyval, MPI_Win_create_keyval). When
// a communicator or datatype that has the attribute is duplicated, copied returns the value for the
// duplicate and whether it has one; an error makes the duplication fail. dropped is called when the
// attribute is deleted, replaced, or freed with its object. Both may be nil: a nil copied gives
// duplicates no attribute.
func NewKey[T any](copied func(from Attributed, v T) (T, bool, error), dropped func(from Attributed, v T)) *Key[T] {
	return &Key[T]{copied, dropped}
}

// CopyAttr is a copy function for NewKey: a duplicate gets the same value (MPI_COMM_DUP_FN).
func CopyAttr[T any](_ Attributed, v T) (T, bool, error) { return v, true, nil }

// SetAttr attaches v to o (MPI_Comm_set_attr, MPI_Type_set_attr,
// MPI_Win_set_attr). A value that o had for the key is dropped first. It is
// local.
func SetAttr[T any](o Attributed, k *Key[T], v T) {
	DeleteAttr(o, k)
	a := o.attributes()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, attribute{
		key: k, value: v,
		copy: func() (any, bool, error) {
			if k.copy == nil {
				return nil, false, nil
			}
			return k.copy(o, v)
		},
		drop: func() {
			if k.drop != nil {
				k.drop(o, v)
			}
		},
		again: func(to Attributed, v any) { SetAttr(to, k, v.(T)) },
	})
}

// GetAttr returns the value that is attached to o for the key, and whether there is one
// (MPI_Comm_get_attr, MPI_Type_get_attr, MPI_Win_get_attr).
func GetAttr[T any](o Attributed, k *Key[T]) (v T, ok bool) {
	a := o.attributes()
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.find(k); i >= 0 {
		return a.list[i].value.(T), true
	}
	return v, false
}

// DeleteAttr deletes the attribute and reports whether there was one
// (MPI_Comm_delete_attr, MPI_Type_delete_attr, MPI_Win_delete_attr).
func DeleteAttr[T any](o Attributed, k *Key[T]) bool {
	a := o.attributes()
	a.mu.Lock()
	i := a.find(k)
	if i < 0 {
		a.mu.Unlock()
		return false
	}
	x := a.list[i]
	a.list = slices.Delete(a.list, i, i+1)
	a.mu.Unlock()
	x.drop()
	return true
}

// attributes are those of one object. The zero value has none.
type attributes struct {
	mu   sync.Mutex
	list []attribute // in the order they were attached
}

type attribute struct {
	key, value any
	copy       func() (any, bool, error)
	drop       func()
	again      func(to Attributed, v any)
}

func (a *attributes) find(key any) int {
	return slices.IndexFunc(a.list, func(x attribute) bool { return x.key == key })
}

// copyTo gives a duplicate its attributes.
func (a *attributes) copyTo(to Attributed) error {
	a.mu.Lock()
	list := slices.Clone(a.list)
	a.mu.Unlock()
	for _, x := range list {
		v, ok, err := x.copy()
		if err != nil {
			return fmt.Errorf("mpi: copying an attribute: %w", err)
		}
		if ok {
			x.again(to, v)
		}
	}
	return nil
}

// dropAll deletes all attributes, the latest first (MPI-4.1, Section 11.2.4
// for those of MPI_COMM_SELF).
func (a *attributes) dropAll() {
	a.mu.Lock()
	list := a.list
	a.list = nil
	a.mu.Unlock()
	for _, x := range slices.Backward(list) {
		x.drop()
	}
}
