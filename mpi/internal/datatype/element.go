package datatype

import (
	"fmt"
	"math/bits"
	"reflect"
	"sync"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// elementSigs caches, per reflect.Type, the signature of a valid element type; nil for others.
var elementSigs sync.Map // reflect.Type → *Sig

// CheckElement returns mpierr.ErrType if T holds pointers.
func CheckElement[T any]() error {
	_, err := ElementSig[T]()
	return err
}

// ElementSig returns the signature of T, and mpierr.ErrType if T holds pointers.
func ElementSig[T any]() (Sig, error) {
	switch any((*T)(nil)).(type) {
	case *byte:
		return SigAny, nil
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
		var sig *Sig
		if pointerFree(t) {
			sig = new(SigOf(t))
		}
		s, _ = elementSigs.LoadOrStore(t, sig)
	}
	sig := s.(*Sig)
	if sig == nil {
		return SigAny, fmt.Errorf("%w: %v", mpierr.ErrType, t)
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

// CheckedBytes is Bytes after CheckElement.
func CheckedBytes[T any](buf []T) ([]byte, error) {
	if err := CheckElement[T](); err != nil {
		return nil, err
	}
	return Bytes(buf), nil
}

// Bytes returns the memory of buf as bytes, without copying: the view shares the memory
// of buf and keeps it alive. T must have passed CheckElement.
func Bytes[T any](buf []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)*SizeOf[T]())
}

// View is the inverse of Bytes. b must be aligned for T.
func View[T any](b []byte) []T {
	size := SizeOf[T]()
	if size == 0 || len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// SizeOf returns the size of one T in bytes.
func SizeOf[T any]() int {
	var z T
	return int(unsafe.Sizeof(z))
}
