package mpi

import (
	"reflect"

	"github.com/weftstack/weft/mpi/internal/op"
)

// isWord reports whether elements of type t are 64-bit integers, which RDMA atomics can update.
func isWord(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int64, reflect.Uint64:
		return true
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return t.Size() == 8
	}
	return false
}

// reducersOf returns the operators that updates of elements of type T, of the given kind, may use:
// the predefined ones (MPI-4.1, Section 12.3.4).
func reducersOf[T Element](kind reflect.Kind) op.Table {
	ops := op.Predefined(kind)
	if kind == reflect.Struct {
		var v T
		if p, ok := any(v).(interface{ locOps() (mn, mx op.Reducer) }); ok {
			ops[op.CodeMinLoc], ops[op.CodeMaxLoc] = p.locOps()
		}
	}
	return ops
}

// locOps returns the operators on pairs.
func (ValLoc[V]) locOps() (mn, mx op.Reducer) { return op.MinLoc[V]{}, op.MaxLoc[V]{} }
