package op

import (
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// The types that the operators take, as in package mpi.
type (
	// Integer is any integer type.
	Integer interface {
		~int | ~int8 | ~int16 | ~int32 | ~int64 |
			~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
	}
	// Ordered is any type with an order.
	Ordered interface {
		Integer | ~float32 | ~float64
	}
	// Number is any type that can be added and multiplied.
	Number interface {
		Ordered | ~complex64 | ~complex128
	}
	// Logical is any type with a truth value: for integers, 0 is false.
	Logical interface{ Integer | ~bool }
)

// builtin holds what the operators below share: they are commutative. The caller deals with
// floating-point addition, which is not associative: see mpi.Tuning.Deterministic.
type builtin struct{}

func (builtin) Commutative() bool { return true }

// The predefined operators. They have no state.
type (
	Sum[T Number]     struct{ builtin }
	Prod[T Number]    struct{ builtin }
	Min[T Ordered]    struct{ builtin } // a NaN wins over any number
	Max[T Ordered]    struct{ builtin } // a NaN wins over any number
	Land[T Logical]   struct{ builtin }
	Lor[T Logical]    struct{ builtin }
	Lxor[T Logical]   struct{ builtin }
	Band[T Integer]   struct{ builtin }
	Bor[T Integer]    struct{ builtin }
	Bxor[T Integer]   struct{ builtin }
	MinLoc[V Ordered] struct{ builtin } // of ValLoc[V]
	MaxLoc[V Ordered] struct{ builtin } // of ValLoc[V]
	Replace           struct{}          // the result is the operand of the higher rank
	NoOp              struct{}          // the result is the operand of the lower rank
)

// A ValLoc is a value and where it was found, laid out as mpi.ValLoc.
type ValLoc[V Ordered] struct {
	Val V
	Loc int
}

func (Sum[T]) Name() string       { return "sum" }
func (Prod[T]) Name() string      { return "prod" }
func (Min[T]) Name() string       { return "min" }
func (Max[T]) Name() string       { return "max" }
func (Land[T]) Name() string      { return "land" }
func (Lor[T]) Name() string       { return "lor" }
func (Lxor[T]) Name() string      { return "lxor" }
func (Band[T]) Name() string      { return "band" }
func (Bor[T]) Name() string       { return "bor" }
func (Bxor[T]) Name() string      { return "bxor" }
func (MinLoc[V]) Name() string    { return "minloc" }
func (MaxLoc[V]) Name() string    { return "maxloc" }
func (Replace) Name() string      { return "replace" }
func (NoOp) Name() string         { return "no-op" }
func (Sum[T]) Code() Code         { return CodeSum }
func (Prod[T]) Code() Code        { return CodeProd }
func (Min[T]) Code() Code         { return CodeMin }
func (Max[T]) Code() Code         { return CodeMax }
func (Land[T]) Code() Code        { return CodeLand }
func (Lor[T]) Code() Code         { return CodeLor }
func (Lxor[T]) Code() Code        { return CodeLxor }
func (Band[T]) Code() Code        { return CodeBand }
func (Bor[T]) Code() Code         { return CodeBor }
func (Bxor[T]) Code() Code        { return CodeBxor }
func (MinLoc[V]) Code() Code      { return CodeMinLoc }
func (MaxLoc[V]) Code() Code      { return CodeMaxLoc }
func (Replace) Code() Code        { return CodeReplace }
func (NoOp) Code() Code           { return CodeNoOp }
func (Replace) Commutative() bool { return false }
func (NoOp) Commutative() bool    { return false }

// views returns the operands as elements, all as long as dst.
func views[T any](dst, a, b []byte) (d, x, y []T) {
	d = datatype.View[T](dst)
	return d, datatype.View[T](a)[:len(d)], datatype.View[T](b)[:len(d)]
}

func (Sum[T]) Combine(dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := sumMost(d, x, y); i < len(d); i++ {
		d[i] = x[i] + y[i]
	}
}

func (Prod[T]) Combine(dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func (Min[T]) Combine(dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func (Max[T]) Combine(dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

func (Band[T]) Combine(dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] & y[i]
	}
}

func (Bor[T]) Combine(dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] | y[i]
	}
}

func (Bxor[T]) Combine(dst, a, b []byte) {
	d, x, y := views[T](dst, a, b)
	for i := range d {
		d[i] = x[i] ^ y[i]
	}
}

// truth returns true or 1 as a T. The size of T is enough to select it: T is an integer type, or
// bool, which represents true as 1.
func truth[T Logical]() (t T) {
	switch p := unsafe.Pointer(&t); unsafe.Sizeof(t) {
	case 1:
		*(*uint8)(p) = 1
	case 2:
		*(*uint16)(p) = 1
	case 4:
		*(*uint32)(p) = 1
	case 8:
		*(*uint64)(p) = 1
	}
	return t
}

// logical stores f of the truth of the operands.
func logical[T Logical](dst, a, b []byte, f func(x, y bool) bool) {
	d, x, y := views[T](dst, a, b)
	var no T
	yes := truth[T]()
	for i := range d {
		if f(x[i] != no, y[i] != no) {
			d[i] = yes
		} else {
			d[i] = no
		}
	}
}

func (Land[T]) Combine(dst, a, b []byte) {
	logical[T](dst, a, b, func(x, y bool) bool { return x && y })
}

func (Lor[T]) Combine(dst, a, b []byte) {
	logical[T](dst, a, b, func(x, y bool) bool { return x || y })
}

func (Lxor[T]) Combine(dst, a, b []byte) {
	logical[T](dst, a, b, func(x, y bool) bool { return x != y })
}

func (MinLoc[V]) Combine(dst, a, b []byte) {
	d, xs, ys := views[ValLoc[V]](dst, a, b)
	for i := range d {
		x, y := xs[i], ys[i]
		if y.Val < x.Val || y.Val == x.Val && y.Loc < x.Loc {
			x = y
		}
		d[i] = x
	}
}

func (MaxLoc[V]) Combine(dst, a, b []byte) {
	d, xs, ys := views[ValLoc[V]](dst, a, b)
	for i := range d {
		x, y := xs[i], ys[i]
		if y.Val > x.Val || y.Val == x.Val && y.Loc < x.Loc {
			x = y
		}
		d[i] = x
	}
}

func (Replace) Combine(dst, _, b []byte) { copy(dst, b) }
func (NoOp) Combine(dst, a, _ []byte)    { copy(dst, a) }
