package collective

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// reduceOp returns the operator of a reduction of items of a datatype.
func reduceOp(h, datatype abi.Handle) (mpi.ItemOp, error) {
	o, err := cbinding.OpOf(h)
	if err != nil {
		return mpi.ItemOp{}, err
	}
	if h == abi.Replace || h == abi.NoOp {
		return mpi.ItemOp{}, cbinding.ArgError(abi.ErrOp, "op", o.PredefinedName, "is for accumulating into windows")
	}
	return o.On(datatype), nil
}

// OpCreate is MPI_Op_create, and with large MPI_Op_create_c.
func OpCreate(userFn uintptr, commute int, result uintptr, large bool) int {
	const proc = "MPI_Op_create"
	cbinding.NullHandle(result, abi.OpNull)
	if userFn == 0 {
		return cbinding.Fail(proc, cbinding.NullError("user_fn"))
	}
	if err := cbinding.Out("op", result); err != nil {
		return cbinding.Fail(proc, err)
	}
	h, err := cbinding.Ops.Put(&cbinding.Op{Fn: userFn, Large: large, Commute: commute != 0})
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.SetHandle(result, h)
	return abi.Success
}

// OpFree is MPI_Op_free. Reductions in progress go on with the operator.
func OpFree(p uintptr) int {
	const proc = "MPI_Op_free"
	if err := cbinding.Out("op", p); err != nil {
		return cbinding.Fail(proc, err)
	}
	h := *cbinding.At[abi.Handle](p)
	o, err := cbinding.OpOf(h)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if o.Fn == 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrOp, "op", o.PredefinedName, "is predefined"))
	}
	cbinding.Ops.Delete(h)
	cbinding.SetHandle(p, abi.OpNull)
	return abi.Success
}

// OpCommutative is MPI_Op_commutative.
func OpCommutative(h abi.Handle, commute uintptr) int {
	const proc = "MPI_Op_commutative"
	o, err := cbinding.OpOf(h)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	free := o.Commute
	if o.Fn == 0 {
		free = o.Commutative()
	}
	return cbinding.Fail(proc, cbinding.SetFlag(commute, free))
}

// ReduceLocal is MPI_Reduce_local.
func ReduceLocal(inbuf, inoutbuf uintptr, count int, datatype, h abi.Handle) int {
	const proc = "MPI_Reduce_local"
	in, err := cbinding.BufferOf(inbuf, count, datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	inout, err := cbinding.BufferOf(inoutbuf, count, datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	o, err := reduceOp(h, datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, o.ReduceLocal(in, inout))
}
