package mpi

import "unsafe"

// builtin is what all predefined operators share: they are commutative. (That
// addition of floating-point numbers is not associative is the caller's
// concern; see Tuning.Deterministic.)
type builtin struct{}

func (builtin) Commutative() bool { return true }

type (
	sumOp[T Number]      struct{ builtin }
	prodOp[T Number]     struct{ builtin }
	minOp[T Ordered]     struct{ builtin }
	maxOp[T Ordered]     struct{ builtin }
	landOp[T Logical]    struct{ builtin }
	lorOp[T Logical]     struct{ builtin }
	lxorOp[T Logical]    struct{ builtin }
	bandOp[T Integer]    struct{ builtin }
	borOp[T Integer]     struct{ builtin }
	bxorOp[T Integer]    struct{ builtin }
	minLocOp[V Ordered]  struct{ builtin }
	maxLocOp[V Ordered]  struct{ builtin }
	replaceOp[T Element] struct{}
	noOp[T Element]      struct{}
)

// Sum adds (MPI_SUM).
func Sum[T Number]() Operator[T] { return sumOp[T]{} }

// Prod multiplies (MPI_PROD).
func Prod[T Number]() Operator[T] { return prodOp[T]{} }

// Min takes the smaller; a NaN wins over any number (MPI_MIN).
func Min[T Ordered]() Operator[T] { return minOp[T]{} }

// Max takes the greater; a NaN wins over any number (MPI_MAX).
func Max[T Ordered]() Operator[T] { return maxOp[T]{} }

// Land is the logical and; the result is true or 1 if neither operand is false
// or 0 (MPI_LAND).
func Land[T Logical]() Operator[T] { return landOp[T]{} }

// Lor is the logical or (MPI_LOR).
func Lor[T Logical]() Operator[T] { return lorOp[T]{} }

// Lxor is the logical exclusive or (MPI_LXOR).
func Lxor[T Logical]() Operator[T] { return lxorOp[T]{} }

// Band is the bitwise and (MPI_BAND).
func Band[T Integer]() Operator[T] { return bandOp[T]{} }

// Bor is the bitwise or (MPI_BOR).
func Bor[T Integer]() Operator[T] { return borOp[T]{} }

// Bxor is the bitwise exclusive or (MPI_BXOR).
func Bxor[T Integer]() Operator[T] { return bxorOp[T]{} }

// A ValLoc is a value and where it was found, for MinLoc and MaxLoc
// (MPI_Type_get_value_index; MPI-4.1, Section 6.9.4).
type ValLoc[V Ordered] struct {
	Val V
	Loc int
}

// MinLoc takes the pair with the smaller value; of equal values, the one with
// the smaller location (MPI_MINLOC).
func MinLoc[V Ordered]() Operator[ValLoc[V]] { return minLocOp[V]{} }

// MaxLoc takes the pair with the greater value; of equal values, the one with
// the smaller location (MPI_MAXLOC).
func MaxLoc[V Ordered]() Operator[ValLoc[V]] { return maxLocOp[V]{} }

// Replace takes the operand of the higher rank. It serves accumulating into
// windows, where it is an atomic Put (MPI-4.1, Section 12.3.4).
func Replace[T Element]() Operator[T] { return replaceOp[T]{} }

// NoOp takes the operand of the lower rank. It serves accumulating into
// windows, where it makes GetAccumulate an atomic Get (MPI-4.1, Section
// 12.3.4).
func NoOp[T Element]() Operator[T] { return noOp[T]{} }

func (sumOp[T]) Name() string          { return "sum" }
func (prodOp[T]) Name() string         { return "prod" }
func (minOp[T]) Name() string          { return "min" }
func (maxOp[T]) Name() string          { return "max" }
func (landOp[T]) Name() string         { return "land" }
func (lorOp[T]) Name() string          { return "lor" }
func (lxorOp[T]) Name() string         { return "lxor" }
func (bandOp[T]) Name() string         { return "band" }
func (borOp[T]) Name() string          { return "bor" }
func (bxorOp[T]) Name() string         { return "bxor" }
func (minLocOp[V]) Name() string       { return "minloc" }
func (maxLocOp[V]) Name() string       { return "maxloc" }
func (replaceOp[T]) Name() string      { return "replace" }
func (noOp[T]) Name() string           { return "no-op" }
func (sumOp[T]) code() opCode          { return opSum }
func (prodOp[T]) code() opCode         { return opProd }
func (minOp[T]) code() opCode          { return opMin }
func (maxOp[T]) code() opCode          { return opMax }
func (landOp[T]) code() opCode         { return opLand }
func (lorOp[T]) code() opCode          { return opLor }
func (lxorOp[T]) code() opCode         { return opLxor }
func (bandOp[T]) code() opCode         { return opBand }
func (borOp[T]) code() opCode          { return opBor }
func (bxorOp[T]) code() opCode         { return opBxor }
func (minLocOp[V]) code() opCode       { return opMinLoc }
func (maxLocOp[V]) code() opCode       { return opMaxLoc }
func (replaceOp[T]) code() opCode      { return opReplace }
func (noOp[T]) code() opCode           { return opNoOp }
func (replaceOp[T]) Commutative() bool { return false }
func (noOp[T]) Commutative() bool      { return false }

func (sumOp[T]) apply(dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := sumMost(dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] + b[i]
	}
}

func (prodOp[T]) apply(dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func (minOp[T]) apply(dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

func (maxOp[T]) apply(dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

func (bandOp[T]) apply(dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] & b[i]
	}
}

func (borOp[T]) apply(dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] | b[i]
	}
}

func (bxorOp[T]) apply(dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] ^ b[i]
	}
}

// truth returns true or 1 as a T. A size is enough to know T by: all of them
// are integers, or a bool, whose true is 1.
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

func logical[T Logical](dst, a, b []T, f func(x, y bool) bool) {
	var no T
	yes := truth[T]()
	for i := range dst {
		if f(a[i] != no, b[i] != no) {
			dst[i] = yes
		} else {
			dst[i] = no
		}
	}
}

func (landOp[T]) apply(dst, a, b []T) {
	logical(dst, a, b, func(x, y bool) bool { return x && y })
}

func (lorOp[T]) apply(dst, a, b []T) {
	logical(dst, a, b, func(x, y bool) bool { return x || y })
}

func (lxorOp[T]) apply(dst, a, b []T) {
	logical(dst, a, b, func(x, y bool) bool { return x != y })
}

func (minLocOp[V]) apply(dst, a, b []ValLoc[V]) {
	for i := range dst {
		x, y := a[i], b[i]
		if y.Val < x.Val || y.Val == x.Val && y.Loc < x.Loc {
			x = y
		}
		dst[i] = x
	}
}

func (maxLocOp[V]) apply(dst, a, b []ValLoc[V]) {
	for i := range dst {
		x, y := a[i], b[i]
		if y.Val > x.Val || y.Val == x.Val && y.Loc < x.Loc {
			x = y
		}
		dst[i] = x
	}
}

func (replaceOp[T]) apply(dst, _, b []T) { copy(dst, b) }
func (noOp[T]) apply(dst, a, _ []T)      { copy(dst, a) }

// combine is apply on bytes; Go has no way to say so once for all.

func (o sumOp[T]) combine(dst, a, b []byte)  { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o prodOp[T]) combine(dst, a, b []byte) { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o minOp[T]) combine(dst, a, b []byte)  { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o maxOp[T]) combine(dst, a, b []byte)  { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o landOp[T]) combine(dst, a, b []byte) { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o lorOp[T]) combine(dst, a, b []byte)  { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o lxorOp[T]) combine(dst, a, b []byte) { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o bandOp[T]) combine(dst, a, b []byte) { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o borOp[T]) combine(dst, a, b []byte)  { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o bxorOp[T]) combine(dst, a, b []byte) { o.apply(viewAs[T](dst), viewAs[T](a), viewAs[T](b)) }
func (o minLocOp[V]) combine(dst, a, b []byte) {
	o.apply(viewAs[ValLoc[V]](dst), viewAs[ValLoc[V]](a), viewAs[ValLoc[V]](b))
}
func (o maxLocOp[V]) combine(dst, a, b []byte) {
	o.apply(viewAs[ValLoc[V]](dst), viewAs[ValLoc[V]](a), viewAs[ValLoc[V]](b))
}
func (replaceOp[T]) combine(dst, _, b []byte) { copy(dst, b) }
func (noOp[T]) combine(dst, a, _ []byte)      { copy(dst, a) }
