package cbinding

import (
	"math"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// pointer makes an address of C memory a pointer. The collector ignores pointers to memory that is
// not Go's; p must not be a special value.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// at returns the T at an address that is not null.
func at[T any](p uintptr) *T { return (*T)(pointer(p)) }

// array returns the n T at an address; nil if n is 0.
func array[T any](p uintptr, n int) []T {
	if n == 0 || p == 0 {
		return nil
	}
	return unsafe.Slice((*T)(pointer(p)), n)
}

// out checks a pointer to a result.
func out(name string, p uintptr) error {
	if p == 0 {
		return nullError(name)
	}
	return nil
}

// str returns the string of C at p, which is shorter than limit bytes with its 0 at the end.
func str(name string, p uintptr, limit int) (string, error) {
	if p == 0 {
		return "", nullError(name)
	}
	n := 0
	for *at[byte](p + uintptr(n)) != 0 {
		if n++; n >= limit {
			return "", argError(abi.ErrArg, name, string(array[byte](p, min(n, 32)))+"…", "is too long")
		}
	}
	return string(array[byte](p, n)), nil
}

// setStr stores s at p, cut so that it has room in size bytes with a 0 at its end, and its length as
// an int at length, unless that is null.
func setStr(p, length uintptr, s string, size int) error {
	if p == 0 && size > 0 {
		return nullError("string")
	}
	if len(s) >= size {
		s = s[:max(size-1, 0)]
	}
	if size > 0 {
		b := array[byte](p, len(s)+1)
		copy(b, s)
		b[len(s)] = 0
	}
	if length != 0 {
		*at[int32](length) = int32(len(s))
	}
	return nil
}

// strs returns the strings of C in an array of pointers that ends with a null pointer; none if p is null.
func strs(name string, p uintptr, limit int) ([]string, error) {
	var list []string
	for p != 0 {
		q := *at[uintptr](p)
		if q == 0 {
			break
		}
		s, err := str(name, q, limit)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
		p += unsafe.Sizeof(q)
	}
	return list, nil
}

// ints returns the n integers at p: MPI_Count if large, else int. It allocates if they are int; see
// appendInts for where that matters.
func ints(name string, p uintptr, n int, large bool) ([]int, error) {
	return appendInts(nil, name, p, n, large)
}

// appendInts appends the n integers at p to s.
func appendInts(s []int, name string, p uintptr, n int, large bool) ([]int, error) {
	if n <= 0 {
		return s, nil
	}
	if p == 0 {
		return nil, nullError(name)
	}
	if s == nil {
		s = make([]int, 0, n)
	}
	if large {
		for _, x := range array[int64](p, n) {
			s = append(s, int(x))
		}
		return s, nil
	}
	for _, x := range array[int32](p, n) {
		s = append(s, int(x))
	}
	return s, nil
}

// setInt stores an integer at p: as MPI_Count if large, else as an int. There a value that does not
// fit becomes MPI_UNDEFINED.
func setInt(p uintptr, v int, large bool) error {
	if p == 0 {
		return nullError("result")
	}
	storeInt(p, v, large)
	return nil
}

func storeInt(p uintptr, v int, large bool) {
	switch {
	case large:
		*at[int64](p) = int64(v)
	case v < math.MinInt32 || v > math.MaxInt32:
		*at[int32](p) = abi.Undefined
	default:
		*at[int32](p) = int32(v)
	}
}

// setInts stores integers in the array at p.
func setInts(p uintptr, v []int, large bool) error {
	if p == 0 && len(v) > 0 {
		return nullError("result")
	}
	size := unsafe.Sizeof(int32(0))
	if large {
		size = unsafe.Sizeof(int64(0))
	}
	for i, x := range v {
		storeInt(p+uintptr(i)*size, x, large)
	}
	return nil
}

// setFlag stores a truth value as an int of C.
func setFlag(p uintptr, v bool) error {
	if p == 0 {
		return nullError("flag")
	}
	*at[int32](p) = 0
	if v {
		*at[int32](p) = 1
	}
	return nil
}

// setHandle stores a handle at p, which is not null.
func setHandle(p uintptr, h Handle) { *at[Handle](p) = h }

// nullHandle stores the null handle where a call is to store one: that is the result if it fails.
func nullHandle(p uintptr, null Handle) {
	if p != 0 {
		setHandle(p, null)
	}
}

// handles returns the n handles at p.
func handles(name string, p uintptr, n int) ([]Handle, error) {
	if n > 0 && p == 0 {
		return nil, nullError(name)
	}
	return array[Handle](p, n), nil
}
