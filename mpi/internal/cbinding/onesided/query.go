package onesided

import (
	"errors"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// target translates the rank of a target.
func (w *window) target(name string, rank int) (int, error) {
	if rank == abi.ProcNull {
		return mpi.ProcNull, nil
	}
	if rank >= 0 && w.Unit(rank) > 0 {
		return rank, nil
	}
	return 0, cbinding.ArgError(abi.ErrRank, name, rank, "is no rank of the window")
}

// WinSharedQuery is MPI_Win_shared_query. It works for all windows but dynamic ones: memory that the
// caller cannot access directly has no address and a size of 0 (MPI-4.1, Section 12.2.3).
func WinSharedQuery(win abi.Handle, rank int, size, dispUnit, baseptr uintptr, large bool) int {
	const proc = "MPI_Win_shared_query"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	target, err := w.target("rank", rank)
	switch {
	case err != nil:
	case size == 0 || dispUnit == 0 || baseptr == 0:
		err = cbinding.NullError("size, disp_unit or baseptr")
	case w.Flavor() == mpi.WinFlavorDynamic:
		err = cbinding.ArgError(abi.ErrRmaFlavor, "win", &w.Object, "is dynamic")
	}
	if err != nil {
		return w.Done(proc, err)
	}
	if target == mpi.ProcNull { // the lowest rank with memory
		target = 0
		for r := range w.Group().Size() {
			if w.Size(r) > 0 {
				target = r
				break
			}
		}
	}
	mem, err := w.SharedQuery(target)
	if errors.Is(err, mpi.ErrWindow) {
		mem, err = nil, nil
	}
	if err != nil {
		return w.Done(proc, err)
	}
	*cbinding.At[int64](size) = int64(len(mem))
	*cbinding.At[uintptr](baseptr) = 0
	if len(mem) > 0 {
		*cbinding.At[uintptr](baseptr) = uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	}
	cbinding.StoreInt(dispUnit, w.Unit(target), large)
	return 0
}

// WinGetGroup is MPI_Win_get_group.
func WinGetGroup(win abi.Handle, group uintptr) int {
	cbinding.NullHandle(group, abi.GroupNull)
	return onWindow("MPI_Win_get_group", win, func(w *window) error {
		return cbinding.NewGroup(group, w.Group(), w.session)
	})
}

// WinSetInfo is MPI_Win_set_info.
func WinSetInfo(win, info abi.Handle) int {
	const proc = "MPI_Win_set_info"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	hints, err := cbinding.HintsOf(info)
	if err == nil {
		err = infoError(w.SetInfo(hints))
	}
	return w.Done(proc, err)
}

// WinGetInfo is MPI_Win_get_info.
func WinGetInfo(win abi.Handle, info uintptr) int {
	cbinding.NullHandle(info, abi.InfoNull)
	return onWindow("MPI_Win_get_info", win, func(w *window) error {
		return cbinding.NewInfoHandle(info, cbinding.NewInfo(w.Info()))
	})
}

// WinSetName is MPI_Win_set_name.
func WinSetName(win abi.Handle, name uintptr) int {
	const proc = "MPI_Win_set_name"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	s, err := cbinding.ObjectName("win_name", name)
	if err == nil {
		w.SetName(s)
	}
	return w.Done(proc, err)
}

// WinGetName is MPI_Win_get_name.
func WinGetName(win abi.Handle, name, resultlen uintptr) int {
	if win == abi.WinNull { // has a predefined name, as MPI_COMM_NULL (MPI-4.1, Section 7.8)
		return cbinding.Fail("MPI_Win_get_name", cbinding.SetStr(name, resultlen, "MPI_WIN_NULL", abi.MaxObjectName))
	}
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail("MPI_Win_get_name", err)
	}
	return w.Done("MPI_Win_get_name", cbinding.SetStr(name, resultlen, w.Name(), abi.MaxObjectName))
}
