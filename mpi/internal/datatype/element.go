package datatype

import (
	"fmt"
	"math/bits"
	"reflect"
	"sync"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// An element is what is known of a Go type that may be the element of a buffer.
type element struct {
	sig  Sig
	typ  *Type // the datatype of one, without a handle
	gaps *Type // typ if it has padding, which does not travel; else nil
}

// elements caches, per reflect.Type, what is known of an element type; nil for others.
var elements sync.Map // reflect.Type → *element

// elementOf returns what is known of t, and mpierr.ErrType if it holds pointers.
func elementOf(t reflect.Type) (*element, error) {
	x, hit := elements.Load(t)
	if !hit {
		var e *element
		if pointerFree(t) {
			e = &element{sig: SigOf(t), typ: ofGo(t)}
			if e.typ.size < int(t.Size()) {
				e.gaps = e.typ
			}
		}
		x, _ = elements.LoadOrStore(t, e)
	}
	e := x.(*element)
	if e == nil {
		return nil, fmt.Errorf("%w: %v", mpierr.ErrType, t)
	}
	return e, nil
}

// CheckElement returns mpierr.ErrType if T holds pointers.
func CheckElement[T any]() error {
	_, err := ElementSig[T]()
	return err
}

// ElementSig returns the signature of T, and mpierr.ErrType if T holds pointers.
func ElementSig[T any]() (Sig, error) {
	sig, _, err := Element[T]()
	return sig, err
}

// Element returns the signature of T, and the datatype of one T if T has padding: without it an
// element is one run of memory. It returns mpierr.ErrType if T holds pointers.
func Element[T any]() (sig Sig, gaps *Type, err error) {
	switch any((*T)(nil)).(type) {
	case *byte:
		return SigAny, nil, nil
	case *float64:
		return sigFloat.of(8), nil, nil
	case *int:
		return sigInt.of(bits.UintSize / 8), nil, nil
	case *int32:
		return sigInt.of(4), nil, nil
	case *int64:
		return sigInt.of(8), nil, nil
	case *float32:
		return sigFloat.of(4), nil, nil
	case *uint64:
		return sigUint.of(8), nil, nil
	case *uint32:
		return sigUint.of(4), nil, nil
	case *uint:
		return sigUint.of(bits.UintSize / 8), nil, nil
	case *int8:
		return sigInt.of(1), nil, nil
	case *int16:
		return sigInt.of(2), nil, nil
	case *uint16:
		return sigUint.of(2), nil, nil
	case *complex64:
		return sigComplex.of(8), nil, nil
	case *complex128:
		return sigComplex.of(16), nil, nil
	case *bool:
		return sigBool.of(1), nil, nil
	}
	e, err := elementOf(reflect.TypeFor[T]())
	if err != nil {
		return SigAny, nil, err
	}
	return e.sig, e.gaps, nil
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

// DataSize returns the bytes of data in one T: its size without padding. T must have passed
// CheckElement.
func DataSize[T any]() int {
	if _, gaps, _ := Element[T](); gaps != nil {
		return gaps.size
	}
	return SizeOf[T]()
}

// SizeOf returns the size of one T in bytes.
func SizeOf[T any]() int {
	var z T
	return int(unsafe.Sizeof(z))
}
