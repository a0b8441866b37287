package mpi

import (
	"fmt"
	"unsafe"
)

// Type sets of the predefined operators (MPI-4.1, Section 6.9.2).
type (
	// Integer is any integer type.
	Integer interface {
		~int | ~int8 | ~int16 | ~int32 | ~int64 |
			~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
	}
	// Ordered is any type with an order that Min and Max can use.
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

// An Op names a reduction operator on elements of type T (MPI-4.1, Section
// 6.9). The predefined ones — Sum, Prod, Min, Max, Land, Lor, Lxor, Band, Bor,
// Bxor, MinLoc, MaxLoc, Replace, NoOp — are passed by name, without a type:
//
//	mpi.Allreduce(ctx, c, send, recv, mpi.Sum)
//
// NewOp and NewVectorOp make others.
type Op[T Element] func() Operator[T]

// An Operator combines two buffers of T element by element (MPI_Op). Its
// implementations are those of this package.
type Operator[T Element] interface {
	// Name is the name of the operator, for messages.
	Name() string
	// Commutative reports whether the order of the operands is free. The
	// operands of other operators are combined in rank order.
	Commutative() bool

	reducer
	apply(dst, a, b []T)
}

// reducer is an Operator to code that knows elements as bytes only.
type reducer interface {
	// combine stores a op b to dst. All have the same length, a whole number
	// of elements; dst may be a or b. a comes from the lower ranks.
	combine(dst, a, b []byte)
	Commutative() bool
	code() opCode
}

// opCode is an operator in messages between ranks.
type opCode uint8

const (
	opUser opCode = iota // known to the origin only
	opSum
	opProd
	opMin
	opMax
	opLand
	opLor
	opLxor
	opBand
	opBor
	opBxor
	opMinLoc
	opMaxLoc
	opReplace
	opNoOp
	opCodes // how many there are
)

// viewAs is the inverse of viewBytes. b must be aligned for T.
func viewAs[T Element](b []byte) []T {
	size := sizeOf[T]()
	if size == 0 || len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// NewOp makes an operator of a function on two elements (MPI_Op_create). It
// must be associative; if commutative is false, a always comes from a lower
// rank than b. The function is called from the goroutine of the collective
// (MPI-4.1, Section 6.9.5).
func NewOp[T Element](f func(a, b T) T, commutative bool) Op[T] {
	return NewVectorOp(func(dst, a, b []T) {
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}, commutative)
}

// NewVectorOp is NewOp with a function on whole buffers: dst[i] = a[i] op b[i]
// for all i (MPI_Op_create). The three have the same length; dst is a, or b, or
// overlaps neither. A reduction may call it on parts of the buffers in any
// order.
func NewVectorOp[T Element](f func(dst, a, b []T), commutative bool) Op[T] {
	op := Operator[T](&userOp[T]{f, commutative})
	return func() Operator[T] { return op }
}

type userOp[T Element] struct {
	f           func(dst, a, b []T)
	commutative bool
}

func (o *userOp[T]) Name() string        { return "user" }
func (o *userOp[T]) Commutative() bool   { return o.commutative }
func (o *userOp[T]) code() opCode        { return opUser }
func (o *userOp[T]) apply(dst, a, b []T) { o.f(dst, a, b) }
func (o *userOp[T]) combine(dst, a, b []byte) {
	o.f(viewAs[T](dst), viewAs[T](a), viewAs[T](b))
}

// ReduceLocal stores a op b to dst, which may be a or b, without communicating
// (MPI-4.1, Section 6.9.7). It returns ErrCount if the lengths differ.
func ReduceLocal[T Element](dst, a, b []T, op Op[T]) error {
	if err := checkElement[T](); err != nil {
		return err
	}
	if len(a) != len(dst) || len(b) != len(dst) {
		return fmt.Errorf("%w: reducing %d and %d elements into %d", ErrCount, len(a), len(b), len(dst))
	}
	if op == nil {
		return ErrOp
	}
	op().apply(dst, a, b)
	return nil
}
