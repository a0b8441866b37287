package cbinding

import (
	"math"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// Pointer makes an address of C memory a pointer. The collector ignores pointers to memory that is
// not Go's; p must not be a special value.
func Pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// At returns the T at an address that is not null.
func At[T any](p uintptr) *T { return (*T)(Pointer(p)) }

// Array returns the n T at an address; nil if n is 0.
func Array[T any](p uintptr, n int) []T {
	if n == 0 || p == 0 {
		return nil
	}
	return unsafe.Slice((*T)(Pointer(p)), n)
}

// Out checks a pointer to a result.
func Out(name string, p uintptr) error {
	if p == 0 {
		return NullError(name)
	}
	return nil
}

// Str returns the string of C at p, which is shorter than limit bytes with its 0 at the end.
func Str(name string, p uintptr, limit int) (string, error) {
	if p == 0 {
		return "", NullError(name)
	}
	n := 0
	for *At[byte](p + uintptr(n)) != 0 {
		if n++; n >= limit {
			return "", ArgError(abi.ErrArg, name, string(Array[byte](p, min(n, 32)))+"…", "is too long")
		}
	}
	return string(Array[byte](p, n)), nil
}

// SetStr stores s at p, cut so that it has room in size bytes with a 0 at its end, and its length as
// an int at length, unless that is null.
func SetStr(p, length uintptr, s string, size int) error {
	if p == 0 && size > 0 {
		return NullError("string")
	}
	if len(s) >= size {
		s = s[:max(size-1, 0)]
	}
	if size > 0 {
		b := Array[byte](p, len(s)+1)
		copy(b, s)
		b[len(s)] = 0
	}
	if length != 0 {
		*At[int32](length) = int32(len(s))
	}
	return nil
}

// Strs returns the strings of C in an array of pointers that ends with a null pointer; none if p is null.
func Strs(name string, p uintptr, limit int) ([]string, error) {
	var list []string
	for p != 0 {
		q := *At[uintptr](p)
		if q == 0 {
			break
		}
		s, err := Str(name, q, limit)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
		p += unsafe.Sizeof(q)
	}
	return list, nil
}

// Ints returns the n integers at p: MPI_Count if large, else int. It allocates if they are int; see
// AppendInts for where that matters.
func Ints(name string, p uintptr, n int, large bool) ([]int, error) {
	return AppendInts(nil, name, p, n, large)
}

// AppendInts appends the n integers at p to s.
func AppendInts(s []int, name string, p uintptr, n int, large bool) ([]int, error) {
	if n <= 0 {
		return s, nil
	}
	if p == 0 {
		return nil, NullError(name)
	}
	if s == nil {
		s = make([]int, 0, n)
	}
	if large {
		for _, x := range Array[int64](p, n) {
			s = append(s, int(x))
		}
		return s, nil
	}
	for _, x := range Array[int32](p, n) {
		s = append(s, int(x))
	}
	return s, nil
}

// SetInt stores an integer at p: as MPI_Count if large, else as an int. There a value that does not
// fit becomes MPI_UNDEFINED.
func SetInt(p uintptr, v int, large bool) error {
	if p == 0 {
		return NullError("result")
	}
	StoreInt(p, v, large)
	return nil
}

// StoreInt is SetInt at an address that is not null.
func StoreInt(p uintptr, v int, large bool) {
	switch {
	case large:
		*At[int64](p) = int64(v)
	case v < math.MinInt32 || v > math.MaxInt32:
		*At[int32](p) = abi.Undefined
	default:
		*At[int32](p) = int32(v)
	}
}

// SetInts stores integers in the array at p.
func SetInts(p uintptr, v []int, large bool) error {
	if p == 0 && len(v) > 0 {
		return NullError("result")
	}
	size := unsafe.Sizeof(int32(0))
	if large {
		size = unsafe.Sizeof(int64(0))
	}
	for i, x := range v {
		StoreInt(p+uintptr(i)*size, x, large)
	}
	return nil
}

// SetFlag stores a truth value as an int of C.
func SetFlag(p uintptr, v bool) error {
	if p == 0 {
		return NullError("flag")
	}
	*At[int32](p) = 0
	if v {
		*At[int32](p) = 1
	}
	return nil
}

// SetHandle stores a handle at p, which is not null.
func SetHandle(p uintptr, h abi.Handle) { *At[abi.Handle](p) = h }

// NullHandle stores the null handle where a call is to store one: that is the result if it fails.
func NullHandle(p uintptr, null abi.Handle) {
	if p != 0 {
		SetHandle(p, null)
	}
}

// Handles returns the n handles at p.
func Handles(name string, p uintptr, n int) ([]abi.Handle, error) {
	if n > 0 && p == 0 {
		return nil, NullError(name)
	}
	return Array[abi.Handle](p, n), nil
}

// ObjectName returns the string at p, cut to what names of objects may have (MPI-4.1, Section 7.8).
func ObjectName(parameter string, p uintptr) (string, error) {
	if p == 0 {
		return "", NullError(parameter)
	}
	n := 0
	for n < abi.MaxObjectName-1 && *At[byte](p + uintptr(n)) != 0 {
		n++
	}
	return string(Array[byte](p, n)), nil
}

// MaxArgument bounds a command and each of its arguments, in bytes.
const MaxArgument = 1 << 20
