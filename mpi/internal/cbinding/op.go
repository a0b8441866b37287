package cbinding

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// An op is an MPI_Op.
type op struct {
	mpi.ItemOp        // of a predefined operator
	name       string // likewise

	// Of an operator of the program.
	fn      uintptr // MPI_User_function, or with large MPI_User_function_c
	large   bool
	commute bool
	last    atomic.Pointer[typedOp] // for the datatype of the last call
}

// A typedOp is an operator of the program for calls with one datatype, whose handle the function gets.
type typedOp struct {
	mpi.ItemOp
	datatype Handle
}

func init() {
	atStart(func() {
		for _, o := range []struct {
			handle Handle
			name   string
			mpi.ItemOp
		}{
			{abi.Sum, "MPI_SUM", mpi.OpSum}, {abi.Prod, "MPI_PROD", mpi.OpProd},
			{abi.Min, "MPI_MIN", mpi.OpMin}, {abi.Max, "MPI_MAX", mpi.OpMax},
			{abi.Land, "MPI_LAND", mpi.OpLand}, {abi.Lor, "MPI_LOR", mpi.OpLor}, {abi.Lxor, "MPI_LXOR", mpi.OpLxor},
			{abi.Band, "MPI_BAND", mpi.OpBand}, {abi.Bor, "MPI_BOR", mpi.OpBor}, {abi.Bxor, "MPI_BXOR", mpi.OpBxor},
			{abi.Minloc, "MPI_MINLOC", mpi.OpMinLoc}, {abi.Maxloc, "MPI_MAXLOC", mpi.OpMaxLoc},
			{abi.Replace, "MPI_REPLACE", mpi.OpReplace}, {abi.NoOp, "MPI_NO_OP", mpi.OpNoOp},
		} {
			ops.set(o.handle, &op{ItemOp: o.ItemOp, name: o.name})
		}
	})
}

// reduceOp returns the operator of a reduction of items of a datatype.
func reduceOp(h, datatype Handle) (mpi.ItemOp, error) {
	o, err := opOf(h)
	if err != nil {
		return mpi.ItemOp{}, err
	}
	if h == abi.Replace || h == abi.NoOp {
		return mpi.ItemOp{}, argError(abi.ErrOp, "op", o.name, "is for accumulating into windows")
	}
	return o.on(datatype), nil
}

// on returns the operator for items of a datatype.
func (o *op) on(datatype Handle) mpi.ItemOp {
	if o.fn == 0 {
		return o.ItemOp
	}
	if last := o.last.Load(); last != nil && last.datatype == datatype {
		return last.ItemOp
	}
	fn, large := o.fn, o.large
	t := &typedOp{datatype: datatype, ItemOp: mpi.NewItemOp(func(in, inout []byte, count int, t *mpi.Datatype) {
		callUserOp(fn, large, in, inout, count, t, datatype)
	}, o.commute)}
	o.last.Store(t)
	return t.ItemOp
}

// callUserOp calls a function of the program with items that lie in the slices, whose first byte is the
// lowest of their data. The number of items is an int of C.
func callUserOp(fn uintptr, large bool, in, inout []byte, count int, t *mpi.Datatype, handle Handle) {
	lb, _ := t.TrueExtent()
	_, extent := t.Extent()
	lowest := lb + min((count-1)*extent, 0)
	from := uintptr(unsafe.Pointer(unsafe.SliceData(in))) - uintptr(lowest)
	to := uintptr(unsafe.Pointer(unsafe.SliceData(inout))) - uintptr(lowest)
	if types.get(handle) == nil { // the program has freed it since: the function gets a handle for the call
		temporary := &datatype{Datatype: t}
		temporary.committed.Store(true)
		if h, err := types.put(temporary); err == nil {
			temporary.handle, handle = h, h
			defer types.delete(h)
		}
	}
	for count > 0 {
		n := count
		if !large {
			n = min(n, math.MaxInt32)
		}
		CallUserOp(fn, from, to, n, handle, large)
		count -= n
		from, to = from+uintptr(n*extent), to+uintptr(n*extent)
	}
	runtime.KeepAlive(in)
	runtime.KeepAlive(inout)
}

// OpCreate is MPI_Op_create, and with large MPI_Op_create_c.
func OpCreate(userFn uintptr, commute int, result uintptr, large bool) int {
	const proc = "MPI_Op_create"
	if userFn == 0 {
		return fail(proc, nullError("user_fn"))
	}
	if err := out("op", result); err != nil {
		return fail(proc, err)
	}
	h, err := ops.put(&op{fn: userFn, large: large, commute: commute != 0})
	if err != nil {
		return fail(proc, err)
	}
	setHandle(result, h)
	return abi.Success
}

// OpFree is MPI_Op_free. Reductions in progress go on with the operator.
func OpFree(p uintptr) int {
	const proc = "MPI_Op_free"
	if err := out("op", p); err != nil {
		return fail(proc, err)
	}
	h := *at[Handle](p)
	o, err := opOf(h)
	if err != nil {
		return fail(proc, err)
	}
	if o.fn == 0 {
		return fail(proc, argError(abi.ErrOp, "op", o.name, "is predefined"))
	}
	ops.delete(h)
	setHandle(p, abi.OpNull)
	return abi.Success
}

// OpCommutative is MPI_Op_commutative.
func OpCommutative(h Handle, commute uintptr) int {
	const proc = "MPI_Op_commutative"
	o, err := opOf(h)
	if err != nil {
		return fail(proc, err)
	}
	free := o.commute
	if o.fn == 0 {
		free = o.Commutative()
	}
	return fail(proc, setFlag(commute, free))
}

// ReduceLocal is MPI_Reduce_local.
func ReduceLocal(inbuf, inoutbuf uintptr, count int, datatype, h Handle) int {
	const proc = "MPI_Reduce_local"
	in, err := bufferOf(inbuf, count, datatype)
	if err != nil {
		return fail(proc, err)
	}
	inout, err := bufferOf(inoutbuf, count, datatype)
	if err != nil {
		return fail(proc, err)
	}
	o, err := reduceOp(h, datatype)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, o.ReduceLocal(in, inout))
}
