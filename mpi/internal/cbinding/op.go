package cbinding

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/bridge"
)

// An Op is an MPI_Op.
type Op struct {
	mpi.ItemOp            // of a predefined operator
	PredefinedName string // likewise

	// Of an operator of the program.
	Fn      uintptr // MPI_User_function, or with large MPI_User_function_c
	Large   bool
	Commute bool
	last    atomic.Pointer[typedOp] // for the datatype of the last call
}

// A typedOp is an operator of the program for calls with one datatype, whose handle the function gets.
type typedOp struct {
	mpi.ItemOp
	datatype abi.Handle
}

func init() {
	AtStart(func() {
		for _, o := range []struct {
			handle abi.Handle
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
			Ops.Set(o.handle, &Op{ItemOp: o.ItemOp, PredefinedName: o.name})
		}
	})
}

// On returns the operator for items of a datatype.
func (o *Op) On(datatype abi.Handle) mpi.ItemOp {
	if o.Fn == 0 {
		return o.ItemOp
	}
	if last := o.last.Load(); last != nil && last.datatype == datatype {
		return last.ItemOp
	}
	fn, large := o.Fn, o.Large
	t := &typedOp{datatype: datatype, ItemOp: mpi.NewItemOp(func(in, inout []byte, count int, t *mpi.Datatype) {
		callUserOp(fn, large, in, inout, count, t, datatype)
	}, o.Commute)}
	bridge.OpReturns(t.ItemOp)
	o.last.Store(t)
	return t.ItemOp
}

// callUserOp calls a function of the program with items that lie in the slices, whose first byte is the
// lowest of their data. The number of items is an int of C.
func callUserOp(fn uintptr, large bool, in, inout []byte, count int, t *mpi.Datatype, handle abi.Handle) {
	lb, _ := t.TrueExtent()
	_, extent := t.Extent()
	lowest := lb + min((count-1)*extent, 0)
	from := uintptr(unsafe.Pointer(unsafe.SliceData(in))) - uintptr(lowest)
	to := uintptr(unsafe.Pointer(unsafe.SliceData(inout))) - uintptr(lowest)
	if Types.Get(handle) == nil { // the program has freed it since: the function gets a handle for the call
		temporary := &Datatype{Datatype: t}
		temporary.Committed.Store(true)
		if h, err := Types.Put(temporary); err == nil {
			temporary.Handle, handle = h, h
			defer Types.Delete(h)
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
