package op

import "github.com/weftstack/weft/mpi/internal/datatype"

// A Reducer is a reduction operator.
type Reducer interface {
	// Combine stores a op b to dst. All have the same length, a whole number
	// of elements; dst may be a or b. a comes from the lower ranks.
	Combine(dst, a, b []byte)
	// Commutative reports whether the order of the operands is free.
	Commutative() bool
	// Code identifies the operator in messages between ranks.
	Code() Code
	// Name is the name of the operator, for messages to people.
	Name() string
}

// A Code is the number of an operator in messages between ranks.
type Code uint8

const (
	CodeUser Code = iota // a function of the program; known to the origin only
	CodeSum
	CodeProd
	CodeMin
	CodeMax
	CodeLand
	CodeLor
	CodeLxor
	CodeBand
	CodeBor
	CodeBxor
	CodeMinLoc
	CodeMaxLoc
	CodeReplace
	CodeNoOp
	Codes // number of codes
)

// User is an operator that is a function of the program.
type User[T any] struct {
	f           func(dst, a, b []T)
	commutative bool
}

// NewUser makes an operator of f, which stores a[i] op b[i] to dst[i] for all i.
func NewUser[T any](f func(dst, a, b []T), commutative bool) *User[T] {
	return &User[T]{f, commutative}
}

func (o *User[T]) Name() string      { return "user" }
func (o *User[T]) Commutative() bool { return o.commutative }
func (o *User[T]) Code() Code        { return CodeUser }
func (o *User[T]) Combine(dst, a, b []byte) {
	o.f(datatype.View[T](dst), datatype.View[T](a), datatype.View[T](b))
}
