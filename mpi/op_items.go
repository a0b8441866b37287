package mpi

import (
	"fmt"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/collective"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
)

// An ItemOp is a reduction operator on items of a datatype that is known at run time (MPI_Op): the
// methods of [Comm] that reduce what Buffers describe take one. The predefined ones take predefined
// datatypes, of C, of Fortran and of Go types, as Section 6.9.2 of MPI-4.1 lists them; calls return
// ErrOp for others. [NewItemOp] makes operators for any datatype. The zero ItemOp is no operator
// (MPI_OP_NULL).
type ItemOp struct {
	code op.Code
	user *itemOp // nil but for op.CodeUser
}

// The predefined operators on items. Their generic forms are [Sum], [Prod] and so on.
var (
	OpSum     = ItemOp{code: op.CodeSum}     // MPI_SUM
	OpProd    = ItemOp{code: op.CodeProd}    // MPI_PROD
	OpMin     = ItemOp{code: op.CodeMin}     // MPI_MIN
	OpMax     = ItemOp{code: op.CodeMax}     // MPI_MAX
	OpLand    = ItemOp{code: op.CodeLand}    // MPI_LAND
	OpLor     = ItemOp{code: op.CodeLor}     // MPI_LOR
	OpLxor    = ItemOp{code: op.CodeLxor}    // MPI_LXOR
	OpBand    = ItemOp{code: op.CodeBand}    // MPI_BAND
	OpBor     = ItemOp{code: op.CodeBor}     // MPI_BOR
	OpBxor    = ItemOp{code: op.CodeBxor}    // MPI_BXOR
	OpMinLoc  = ItemOp{code: op.CodeMinLoc}  // MPI_MINLOC
	OpMaxLoc  = ItemOp{code: op.CodeMaxLoc}  // MPI_MAXLOC
	OpReplace = ItemOp{code: op.CodeReplace} // MPI_REPLACE; for accumulating into windows
	OpNoOp    = ItemOp{code: op.CodeNoOp}    // MPI_NO_OP; for accumulating into windows
)

// An ItemFunc combines count items of t: it stores in[i] op inout[i] to inout[i] for all i
// (MPI_User_function). Both slices hold the items, laid out as t says and aligned for it, and begin
// with the lowest byte of their data: for an extent that is not negative, what t places at offset
// off of the first item is at in[off-lb], with the lb of [Datatype.TrueExtent]. They do not overlap,
// and belong to the function until it returns.
type ItemFunc func(in, inout []byte, count int, t *Datatype)

// NewItemOp makes an operator of a function on items (MPI_Op_create). It must be associative; if
// commutative is false, in comes from lower ranks than inout. Reductions call it with whole items of
// the datatype of the call, of as many at a time as they like, from the goroutine of the call
// (MPI-4.1, Section 6.9.5). One item may span 256 MiB: calls return ErrDatatype for longer ones.
func NewItemOp(f ItemFunc, commutative bool) ItemOp {
	if f == nil {
		return ItemOp{}
	}
	return ItemOp{user: &itemOp{f: f, commutative: commutative}}
}

func init() {
	bridge.OpReturns = func(o any) { o.(ItemOp).user.returns = true }
}

// Name returns the name of the operator (MPI_Op), for messages; that of the generic form.
func (o ItemOp) Name() string {
	if !o.Valid() {
		return "none"
	}
	return o.code.String()
}

// Valid reports whether o is an operator, not the zero ItemOp (MPI_OP_NULL).
func (o ItemOp) Valid() bool { return o.code != op.CodeUser || o.user != nil }

// Commutative reports whether the order of the operands is free (MPI_Op_commutative).
func (o ItemOp) Commutative() bool {
	switch o.code {
	case op.CodeUser:
		return o.user != nil && o.user.commutative
	case op.CodeReplace, op.CodeNoOp:
		return false
	}
	return true
}

// An itemOp is an operator of the program.
type itemOp struct {
	f           ItemFunc
	commutative bool
	returns     bool                        // f always returns: see bridge.OpReturns
	last        atomic.Pointer[itemReducer] // for the datatype of the last call
}

type itemReducer struct {
	t   *datatype.Type
	red op.Reducer
}

// on returns the operator on items of t.
func (u *itemOp) on(t *datatype.Type) (op.Reducer, error) {
	if last := u.last.Load(); last != nil && last.t == t {
		return last.red, nil
	}
	handle, err := datatypeOf(t, nil)
	if err != nil {
		return nil, err
	}
	red, err := op.NewUserItems(func(in, inout datatype.Memory, count int, t *datatype.Type) {
		if count == 0 {
			return
		}
		lo, hi := t.TrueBounds()
		step := (count - 1) * t.Extent()
		lo, hi = lo+min(step, 0), hi+max(step, 0)
		u.f(in.Bytes(lo, hi-lo), inout.Bytes(lo, hi-lo), count, handle)
	}, t, u.commutative)
	if err != nil {
		return nil, err
	}
	red.Returns = u.returns
	u.last.Store(&itemReducer{t, red})
	return red, nil
}

// on returns the operator on packed items of t.
func (o ItemOp) on(t *datatype.Type) (op.Reducer, error) {
	switch {
	case !o.Valid():
		return nil, fmt.Errorf("%w: none", ErrOp)
	case o.user == nil:
		return op.For(o.code, t)
	case t.Size() == 0:
		return op.NoOp{}, nil // there is nothing to call it with
	}
	return o.user.on(t)
}

// ReduceLocal stores in op inout to inout without communicating (MPI_Reduce_local). in and inout are
// as many items of the same datatype, and do not overlap. Errors to test for: ErrOp, ErrCount,
// ErrDatatype, ErrOverlap.
func (o ItemOp) ReduceLocal(in, inout Buffer) error {
	b := o.check(&in, &inout, coll.Reduce)
	if b.Err != nil {
		return b.Err
	}
	if len(b.Send) != len(b.Recv) {
		return fmt.Errorf("%w: reducing %d bytes into %d", ErrCount, len(b.Send), len(b.Recv))
	}
	if datatype.Overlap([]datatype.Buffer{in.items.Described()}, []datatype.Buffer{inout.items.Described()}) {
		return ErrOverlap
	}
	if b.Into != nil {
		inout.items.Gaps.Pack(b.Recv, 0)
	}
	b.Red.Combine(b.Recv, b.Send, b.Recv)
	if b.Into != nil {
		b.Into.Unpack(b.Recv, 0)
	}
	for _, own := range b.Own {
		own.Put()
	}
	return nil
}

// check is checkBuffers for a reduction, with the operator on the items.
func (o ItemOp) check(send, recv *Buffer, kind coll.Kind) collective.Args {
	if send.of == nil && recv.of == nil && send.err == nil && recv.err == nil {
		if !o.Valid() {
			return collective.Args{Err: fmt.Errorf("%w: none", ErrOp)}
		}
		return collective.Args{Red: op.NoOp{}} // of nothing, as where neither is significant
	}
	typ := send
	if send.of == nil && send.err == nil {
		typ = recv
	}
	t, err := typ.datatype()
	if x, y := &send.items, &recv.items; err == nil && send.of != nil && recv.of != nil &&
		(x.Elem != y.Elem || x.Sig != y.Sig) {
		err = fmt.Errorf("%w: reducing items of %v into items of another datatype", ErrDatatype, t)
	}
	var red op.Reducer
	if err == nil {
		red, err = o.on(t)
	}
	if err != nil {
		return collective.Args{Err: err}
	}
	// All of recv is written, but by Exscan at rank 0 nothing.
	b := checkBuffersInto(send, recv, kind == coll.Exscan)
	b.Red = red
	return b
}
