package mpi

import "github.com/weftstack/weft/mpi/internal/op"

// Sum adds (MPI_SUM).
func Sum[T Number]() Operator[T] { return operator[T, op.Sum[T]]{} }

// Prod multiplies (MPI_PROD).
func Prod[T Number]() Operator[T] { return operator[T, op.Prod[T]]{} }

// Min takes the smaller; a NaN wins over any number (MPI_MIN).
func Min[T Ordered]() Operator[T] { return operator[T, op.Min[T]]{} }

// Max takes the greater; a NaN wins over any number (MPI_MAX).
func Max[T Ordered]() Operator[T] { return operator[T, op.Max[T]]{} }

// Land is the logical and; the result is true or 1 if neither operand is false
// or 0 (MPI_LAND).
func Land[T Logical]() Operator[T] { return operator[T, op.Land[T]]{} }

// Lor is the logical or (MPI_LOR).
func Lor[T Logical]() Operator[T] { return operator[T, op.Lor[T]]{} }

// Lxor is the logical exclusive or (MPI_LXOR).
func Lxor[T Logical]() Operator[T] { return operator[T, op.Lxor[T]]{} }

// Band is the bitwise and (MPI_BAND).
func Band[T Integer]() Operator[T] { return operator[T, op.Band[T]]{} }

// Bor is the bitwise or (MPI_BOR).
func Bor[T Integer]() Operator[T] { return operator[T, op.Bor[T]]{} }

// Bxor is the bitwise exclusive or (MPI_BXOR).
func Bxor[T Integer]() Operator[T] { return operator[T, op.Bxor[T]]{} }

// A ValLoc is a value and where it was found, for MinLoc and MaxLoc
// (MPI_Type_get_value_index; MPI-4.1, Section 6.9.4).
type ValLoc[V Ordered] struct {
	Val V
	Loc int
}

// MinLoc takes the pair with the smaller value; of equal values, the one with
// the smaller location (MPI_MINLOC).
func MinLoc[V Ordered]() Operator[ValLoc[V]] { return operator[ValLoc[V], op.MinLoc[V]]{} }

// MaxLoc takes the pair with the greater value; of equal values, the one with
// the smaller location (MPI_MAXLOC).
func MaxLoc[V Ordered]() Operator[ValLoc[V]] { return operator[ValLoc[V], op.MaxLoc[V]]{} }

// Replace takes the operand of the higher rank. It serves accumulating into
// windows, where it is an atomic Put (MPI-4.1, Section 12.3.4).
func Replace[T Element]() Operator[T] { return operator[T, op.Replace]{} }

// NoOp takes the operand of the lower rank. It serves accumulating into
// windows, where it makes GetAccumulate an atomic Get (MPI-4.1, Section
// 12.3.4).
func NoOp[T Element]() Operator[T] { return operator[T, op.NoOp]{} }
