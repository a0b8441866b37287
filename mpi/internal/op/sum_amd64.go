//go:build !race

package op

import (
	"reflect"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

//go:noescape
func sumFloat32(dst, a, b *byte, n int)

//go:noescape
func sumFloat64(dst, a, b *byte, n int)

//go:noescape
func sumInt8(dst, a, b *byte, n int)

//go:noescape
func sumInt16(dst, a, b *byte, n int)

//go:noescape
func sumInt32(dst, a, b *byte, n int)

//go:noescape
func sumInt64(dst, a, b *byte, n int)

// sumBlock is the multiple of bytes that the functions above take.
const sumBlock = 64

// sumMost adds most of the elements by SIMD instructions, and returns how many. dst may be a or b.
func sumMost[T Number](dst, a, b []T) int {
	size := datatype.SizeOf[T]()
	n := len(dst) * size &^ (sumBlock - 1)
	if n == 0 {
		return 0
	}
	var f func(dst, a, b *byte, n int)
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Float32, reflect.Complex64:
		f = sumFloat32
	case reflect.Float64, reflect.Complex128:
		f = sumFloat64
	default: // integers
		switch size {
		case 1:
			f = sumInt8
		case 2:
			f = sumInt16
		case 4:
			f = sumInt32
		default:
			f = sumInt64
		}
	}
	f(bytePointer(dst), bytePointer(a), bytePointer(b), n)
	return n / size
}

func bytePointer[T any](v []T) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(v))) }
