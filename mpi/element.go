package mpi

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

// Element is what the elements of a message buffer may be: any type of fixed
// size that holds no pointer — numbers, bool, and arrays and structs of these.
// The language cannot express that as a type set, so it is checked at run
// time, once per type; a buffer of another type gives ErrType. Values travel
// in the memory layout of the machine: ranks of one job share an architecture.
type Element interface{ any }

// elementOK caches, per reflect.Type, whether a type is a valid Element.
var elementOK sync.Map // reflect.Type → bool

// checkElement returns ErrType if T holds pointers.
func checkElement[T Element]() error {
	switch any((*T)(nil)).(type) {
	case *byte, *int8, *int16, *uint16, *int32, *uint32, *int64, *uint64, *int, *uint,
		*float32, *float64, *complex64, *complex128, *bool:
		return nil
	}
	t := reflect.TypeFor[T]()
	ok, hit := elementOK.Load(t)
	if !hit {
		ok = pointerFree(t)
		elementOK.Store(t, ok)
	}
	if !ok.(bool) {
		return fmt.Errorf("%w: %v", ErrType, t)
	}
	return nil
}

// pointerFree reports whether values of t can be copied as bytes between processes.
func pointerFree(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return pointerFree(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if !pointerFree(field.Type) {
				return false
			}
		}
		return true
	}
	return false
}

// bytesOf returns the memory of buf as bytes, without copying.
// The view shares buf's memory and keeps it alive.
func bytesOf[T Element](buf []T) ([]byte, error) {
	if err := checkElement[T](); err != nil {
		return nil, err
	}
	return viewBytes(buf), nil
}

// viewBytes is bytesOf for a type that has already been checked.
func viewBytes[T Element](buf []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)*int(unsafe.Sizeof(z)))
}

// sizeOf returns the size of one T in bytes.
func sizeOf[T Element]() int {
	var z T
	return int(unsafe.Sizeof(z))
}
