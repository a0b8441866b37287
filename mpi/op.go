package mpi

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
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

	// reducer returns the operator on elements as bytes.
	reducer() op.Reducer
}

// operator is an Operator[T] that combines as R does. R is a type without state, or a
// pointer, so that making an Operator of it allocates nothing.
type operator[T Element, R op.Reducer] struct{ red R }

func (o operator[T, R]) Name() string        { return o.red.Name() }
func (o operator[T, R]) Commutative() bool   { return o.red.Commutative() }
func (o operator[T, R]) reducer() op.Reducer { return o.red }

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
	user := Operator[T](operator[T, *op.User[T]]{op.NewUser(f, commutative)})
	return func() Operator[T] { return user }
}

// ReduceLocal stores a op b to dst, which may be a or b, without communicating
// (MPI-4.1, Section 6.9.7). It returns ErrCount if the lengths differ.
func ReduceLocal[T Element](dst, a, b []T, op Op[T]) error {
	if err := datatype.CheckElement[T](); err != nil {
		return err
	}
	if len(a) != len(dst) || len(b) != len(dst) {
		return fmt.Errorf("%w: reducing %d and %d elements into %d", ErrCount, len(a), len(b), len(dst))
	}
	if op == nil {
		return ErrOp
	}
	op().reducer().Combine(datatype.Bytes(dst), datatype.Bytes(a), datatype.Bytes(b))
	return nil
}
