package onesided

import (
	"errors"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// updateOps are the operators of updates: the predefined ones (MPI-4.1, Section 12.3.4).
var updateOps = map[abi.Handle]mpi.ItemOp{
	abi.Sum: mpi.OpSum, abi.Min: mpi.OpMin, abi.Max: mpi.OpMax, abi.Prod: mpi.OpProd, abi.Band: mpi.OpBand,
	abi.Bor: mpi.OpBor, abi.Bxor: mpi.OpBxor, abi.Land: mpi.OpLand, abi.Lor: mpi.OpLor, abi.Lxor: mpi.OpLxor,
	abi.Minloc: mpi.OpMinLoc, abi.Maxloc: mpi.OpMaxLoc, abi.Replace: mpi.OpReplace, abi.NoOp: mpi.OpNoOp,
}

// updateOp returns the operator of an update, which fetches the old elements or does not.
func updateOp(h abi.Handle, fetches bool) (mpi.ItemOp, error) {
	o, ok := updateOps[h]
	switch {
	case !ok:
		if _, err := cbinding.OpOf(h); err != nil {
			return o, err
		}
		return o, cbinding.ArgError(abi.ErrOp, "op", uintptr(h), "is not predefined")
	case h == abi.NoOp && !fetches:
		return o, cbinding.ArgError(abi.ErrOp, "op", "MPI_NO_OP", "is for calls that fetch")
	}
	return o, nil
}

// An access is an operation on a window whose arguments are right.
type access struct {
	w            *window
	target, disp int
	count        int // items at the target
	t            *mpi.Datatype
}

// access checks what all operations have: the target and what is there.
func (w *window) access(rank, disp, count int, datatype abi.Handle) (a access, err error) {
	a = access{w: w, disp: disp, count: count}
	if a.target, err = w.target("target_rank", rank); err != nil {
		return a, err
	}
	if count < 0 {
		return a, cbinding.Negative("target_count", count)
	}
	t, err := cbinding.CommittedType(datatype)
	if err != nil {
		return a, err
	}
	a.t = t.Datatype
	if disp < 0 && w.Flavor() != mpi.WinFlavorDynamic && a.target != mpi.ProcNull {
		return a, cbinding.ArgError(abi.ErrDisp, "target_disp", disp, "is negative")
	}
	return a, w.epoch.operate(rank)
}

// operationError gives errors that are about a datatype here the class that they have in C.
func operationError(err error) error {
	if errors.Is(err, mpi.ErrDatatype) || errors.Is(err, mpi.ErrTypeMismatch) {
		return cbinding.WithClass(err, abi.ErrType)
	}
	return err
}

// transfer does MPI_Put, MPI_Get and their forms with requests.
func transfer(
	proc string, origin uintptr, ocount int, otype abi.Handle, rank, disp, tcount int, ttype,
	win abi.Handle, request uintptr, asks bool, start func(a access, b mpi.Buffer) (*mpi.Request, error),
) int {
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	var b mpi.Buffer
	var a access
	if b, err = cbinding.BufferOf(origin, ocount, otype); err == nil {
		a, err = w.access(rank, disp, tcount, ttype)
	}
	return a.run(w, proc, rank, request, asks, err, func() (*mpi.Request, error) { return start(a, b) })
}

// run ends an operation: it starts it if err is nil, and stores the handle of its request if the call
// asks for one.
func (a *access) run(w *window, proc string, rank int, request uintptr, asks bool, err error,
	start func() (*mpi.Request, error)) int {
	if err == nil && asks {
		if err = cbinding.RequestRoom(request); err == nil {
			err = w.epoch.passive(proc, rank)
		}
	}
	var r *mpi.Request
	if err == nil {
		r, err = start()
		err = operationError(err)
	}
	if asks {
		return w.NewRequest(proc, request, r, err)
	}
	return w.Done(proc, err)
}

// Put is MPI_Put.
func Put(originAddr uintptr, originCount int, originDatatype abi.Handle, targetRank, targetDisp, targetCount int,
	targetDatatype, win abi.Handle) int {
	return transfer("MPI_Put", originAddr, originCount, originDatatype, targetRank, targetDisp, targetCount,
		targetDatatype, win, 0, false, func(a access, b mpi.Buffer) (*mpi.Request, error) {
			return nil, a.w.Put(cbinding.Background, b, a.target, a.disp, a.count, a.t)
		})
}

// Get is MPI_Get.
func Get(originAddr uintptr, originCount int, originDatatype abi.Handle, targetRank, targetDisp, targetCount int,
	targetDatatype, win abi.Handle) int {
	return transfer("MPI_Get", originAddr, originCount, originDatatype, targetRank, targetDisp, targetCount,
		targetDatatype, win, 0, false, func(a access, b mpi.Buffer) (*mpi.Request, error) {
			return nil, a.w.Get(cbinding.Background, b, a.target, a.disp, a.count, a.t)
		})
}

// Rput is MPI_Rput.
func Rput(originAddr uintptr, originCount int, originDatatype abi.Handle, targetRank, targetDisp, targetCount int,
	targetDatatype, win abi.Handle, request uintptr) int {
	return transfer("MPI_Rput", originAddr, originCount, originDatatype, targetRank, targetDisp, targetCount,
		targetDatatype, win, request, true, func(a access, b mpi.Buffer) (*mpi.Request, error) {
			return a.w.Rput(cbinding.Background, b, a.target, a.disp, a.count, a.t)
		})
}

// Rget is MPI_Rget.
func Rget(originAddr uintptr, originCount int, originDatatype abi.Handle, targetRank, targetDisp, targetCount int,
	targetDatatype, win abi.Handle, request uintptr) int {
	return transfer("MPI_Rget", originAddr, originCount, originDatatype, targetRank, targetDisp, targetCount,
		targetDatatype, win, request, true, func(a access, b mpi.Buffer) (*mpi.Request, error) {
			return a.w.Rget(cbinding.Background, b, a.target, a.disp, a.count, a.t)
		})
}

// An update is the arguments of an update of a window.
type update struct {
	access
	origin, result mpi.Buffer
	op             mpi.ItemOp
}

// update checks the arguments of an update that fetches the old elements to result, or does not. With
// MPI_NO_OP origin is ignored.
func (w *window) update(origin uintptr, ocount int, otype abi.Handle, result uintptr, rcount int, rtype abi.Handle,
	fetches bool, rank, disp, tcount int, ttype, op abi.Handle) (u update, err error) {
	if u.op, err = updateOp(op, fetches); err != nil {
		return u, err
	}
	if op != abi.NoOp {
		if u.origin, err = cbinding.BufferOf(origin, ocount, otype); err != nil {
			return u, err
		}
	}
	if fetches {
		if u.result, err = cbinding.BufferOf(result, rcount, rtype); err != nil {
			return u, err
		}
	}
	u.access, err = w.access(rank, disp, tcount, ttype)
	return u, err
}

// Accumulate is MPI_Accumulate.
func Accumulate(
	originAddr uintptr, originCount int, originDatatype abi.Handle, targetRank, targetDisp,
	targetCount int, targetDatatype, op, win abi.Handle,
) int {
	const proc = "MPI_Accumulate"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	u, err := w.update(originAddr, originCount, originDatatype, 0, 0, 0, false, targetRank, targetDisp, targetCount,
		targetDatatype, op)
	return u.run(w, proc, targetRank, 0, false, err, func() (*mpi.Request, error) {
		return nil, w.Accumulate(cbinding.Background, u.origin, u.target, u.disp, u.count, u.t, u.op)
	})
}

// Raccumulate is MPI_Raccumulate.
func Raccumulate(
	originAddr uintptr, originCount int, originDatatype abi.Handle, targetRank, targetDisp,
	targetCount int, targetDatatype, op, win abi.Handle, request uintptr,
) int {
	const proc = "MPI_Raccumulate"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	u, err := w.update(originAddr, originCount, originDatatype, 0, 0, 0, false, targetRank, targetDisp, targetCount,
		targetDatatype, op)
	return u.run(w, proc, targetRank, request, true, err, func() (*mpi.Request, error) {
		return w.Raccumulate(cbinding.Background, u.origin, u.target, u.disp, u.count, u.t, u.op)
	})
}

// GetAccumulate is MPI_Get_accumulate.
func GetAccumulate(
	originAddr uintptr, originCount int, originDatatype abi.Handle, resultAddr uintptr, resultCount int,
	resultDatatype abi.Handle, targetRank, targetDisp, targetCount int, targetDatatype, op, win abi.Handle,
) int {
	const proc = "MPI_Get_accumulate"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	u, err := w.update(originAddr, originCount, originDatatype, resultAddr, resultCount, resultDatatype, true, targetRank,
		targetDisp, targetCount, targetDatatype, op)
	return u.run(w, proc, targetRank, 0, false, err, func() (*mpi.Request, error) {
		return nil, w.GetAccumulate(cbinding.Background, u.origin, u.result, u.target, u.disp, u.count, u.t, u.op)
	})
}

// RgetAccumulate is MPI_Rget_accumulate.
func RgetAccumulate(
	originAddr uintptr, originCount int, originDatatype abi.Handle, resultAddr uintptr, resultCount int,
	resultDatatype abi.Handle, targetRank, targetDisp, targetCount int, targetDatatype, op, win abi.Handle,
	request uintptr,
) int {
	const proc = "MPI_Rget_accumulate"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	u, err := w.update(originAddr, originCount, originDatatype, resultAddr, resultCount, resultDatatype, true, targetRank,
		targetDisp, targetCount, targetDatatype, op)
	return u.run(w, proc, targetRank, request, true, err, func() (*mpi.Request, error) {
		return w.RgetAccumulate(cbinding.Background, u.origin, u.result, u.target, u.disp, u.count, u.t, u.op)
	})
}

// predefinedType returns the error of a datatype that is not predefined, or nil.
func predefinedType(h abi.Handle) error {
	t, err := cbinding.TypeOf(h)
	if err == nil && !t.IsPredefined {
		err = cbinding.ArgError(abi.ErrType, "datatype", t.Datatype, "is not predefined")
	}
	return err
}

// FetchAndOp is MPI_Fetch_and_op.
func FetchAndOp(
	originAddr, resultAddr uintptr, datatype abi.Handle, targetRank, targetDisp int, op, win abi.Handle,
) int {
	const proc = "MPI_Fetch_and_op"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	var u update
	if err = predefinedType(datatype); err == nil {
		u, err = w.update(originAddr, 1, datatype, resultAddr, 1, datatype, true, targetRank, targetDisp, 1, datatype, op)
	}
	return u.run(w, proc, targetRank, 0, false, err, func() (*mpi.Request, error) {
		return nil, w.FetchAndOp(cbinding.Background, u.origin, u.result, u.target, u.disp, u.t, u.op)
	})
}

// CompareAndSwap is MPI_Compare_and_swap.
func CompareAndSwap(originAddr, compareAddr, resultAddr uintptr, datatype abi.Handle, targetRank, targetDisp int,
	win abi.Handle) int {
	const proc = "MPI_Compare_and_swap"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	var swap, compare, result mpi.Buffer
	var a access
	if err = predefinedType(datatype); err == nil {
		swap, err = cbinding.BufferOf(originAddr, 1, datatype)
	}
	if err == nil {
		compare, err = cbinding.BufferOf(compareAddr, 1, datatype)
	}
	if err == nil {
		result, err = cbinding.BufferOf(resultAddr, 1, datatype)
	}
	if err == nil {
		a, err = w.access(targetRank, targetDisp, 1, datatype)
	}
	return a.run(w, proc, targetRank, 0, false, err, func() (*mpi.Request, error) {
		return nil, w.CompareAndSwap(cbinding.Background, swap, compare, result, a.target, a.disp, a.t)
	})
}
