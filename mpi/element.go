package mpi

import (
	"fmt"
	"math/bits"
	"reflect"
	"sync"
	"unsafe"
)

// Element is what the elements of a message buffer may be: any type of fixed
// size that holds no pointer — numbers, bool, and arrays and structs of these
// (MPI-4.1, Section 3.2.2). The language cannot express that as a type set, so
// it is checked at run time, once per type; a buffer of another type gives
// ErrType. Values travel in the memory layout of the machine: ranks of one job
// share an architecture.
type Element interface{ any }

// elementSigs caches, per reflect.Type, the signature of a valid Element; nil for others.
var elementSigs sync.Map // reflect.Type → *typeSig

// checkElement returns ErrType if T holds pointers.
func checkElement[T Element]() error {
	_, err := elementSig[T]()
	return err
}

// elementSig returns the signature of T, and ErrType if T holds pointers.
func elementSig[T Element]() (typeSig, error) {
	switch any((*T)(nil)).(type) {
	case *byte:
		return sigAny, nil
	case *float64:
		return sigFloat.of(8), nil
	case *int:
		return sigInt.of(bits.UintSize / 8), nil
	case *int32:
		return sigInt.of(4), nil
	case *int64:
		return sigInt.of(8), nil
	case *float32:
		return sigFloat.of(4), nil
	case *uint64:
		return sigUint.of(8), nil
	case *uint32:
		return sigUint.of(4), nil
	case *uint:
		return sigUint.of(bits.UintSize / 8), nil
	case *int8:
		return sigInt.of(1), nil
	case *int16:
		return sigInt.of(2), nil
	case *uint16:
		return sigUint.of(2), nil
	case *complex64:
		return sigComplex.of(8), nil
	case *complex128:
		return sigComplex.of(16), nil
	case *bool:
		return sigBool.of(1), nil
	}
	t := reflect.TypeFor[T]()
	s, hit := elementSigs.Load(t)
	if !hit {
		var sig *typeSig
		if pointerFree(t) {
			sig = new(sigOf(t))
		}
		s, _ = elementSigs.LoadOrStore(t, sig)
	}
	sig := s.(*typeSig)
	if sig == nil {
		return sigAny, fmt.Errorf("%w: %v", ErrType, t)
	}
	return *sig, nil
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

// typedBytes is bytesOf, with the slot of the program for messages of such elements.
func typedBytes[T Element](buf []T) ([]byte, slot, error) {
	sig, err := elementSig[T]()
	if err != nil {
		return nil, 0, err
	}
	return viewBytes(buf), slotUser.of(sig), nil
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
