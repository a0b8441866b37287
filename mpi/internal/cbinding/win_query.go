package cbinding

import (
	"errors"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// target translates the rank of a target.
func (w *window) target(name string, rank int) (int, error) {
	if rank == abi.ProcNull {
		return mpi.ProcNull, nil
	}
	if rank >= 0 && w.Unit(rank) > 0 {
		return rank, nil
	}
	return 0, argError(abi.ErrRank, name, rank, "is no rank of the window")
}

// WinSharedQuery is MPI_Win_shared_query. It works for all windows but dynamic ones: memory that the
// caller cannot access directly has no address and a size of 0 (MPI-4.1, Section 12.2.3).
func WinSharedQuery(win Handle, rank int, size, dispUnit, baseptr uintptr, large bool) int {
	const proc = "MPI_Win_shared_query"
	w, err := winOf(win)
	if err != nil {
		return fail(proc, err)
	}
	target, err := w.target("rank", rank)
	switch {
	case err != nil:
	case size == 0 || dispUnit == 0 || baseptr == 0:
		err = nullError("size, disp_unit or baseptr")
	case w.Flavor() == mpi.WinFlavorDynamic:
		err = argError(abi.ErrRmaFlavor, "win", &w.object, "is dynamic")
	}
	if err != nil {
		return w.done(proc, err)
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
		return w.done(proc, err)
	}
	*at[int64](size) = int64(len(mem))
	*at[uintptr](baseptr) = 0
	if len(mem) > 0 {
		*at[uintptr](baseptr) = uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	}
	storeInt(dispUnit, w.Unit(target), large)
	return 0
}

// WinGetGroup is MPI_Win_get_group.
func WinGetGroup(win Handle, group uintptr) int {
	w, err := winOf(win)
	if err != nil {
		return fail("MPI_Win_get_group", err)
	}
	return w.done("MPI_Win_get_group", newGroup(group, w.Group(), w.session))
}

// WinSetInfo is MPI_Win_set_info.
func WinSetInfo(win, info Handle) int {
	const proc = "MPI_Win_set_info"
	w, err := winOf(win)
	if err != nil {
		return fail(proc, err)
	}
	hints, err := hintsOf(info)
	if err == nil {
		err = infoError(w.SetInfo(hints))
	}
	return w.done(proc, err)
}

// WinGetInfo is MPI_Win_get_info.
func WinGetInfo(win Handle, info uintptr) int {
	w, err := winOf(win)
	if err != nil {
		return fail("MPI_Win_get_info", err)
	}
	return w.done("MPI_Win_get_info", newInfoHandle(info, newInfo(w.Info())))
}

// WinSetName is MPI_Win_set_name.
func WinSetName(win Handle, name uintptr) int {
	const proc = "MPI_Win_set_name"
	w, err := winOf(win)
	if err != nil {
		return fail(proc, err)
	}
	s, err := objectName("win_name", name)
	if err == nil {
		w.SetName(s)
	}
	return w.done(proc, err)
}

// WinGetName is MPI_Win_get_name.
func WinGetName(win Handle, name, resultlen uintptr) int {
	if win == abi.WinNull { // has a predefined name, as MPI_COMM_NULL (MPI-4.1, Section 7.8)
		return fail("MPI_Win_get_name", setStr(name, resultlen, "MPI_WIN_NULL", abi.MaxObjectName))
	}
	w, err := winOf(win)
	if err != nil {
		return fail("MPI_Win_get_name", err)
	}
	return w.done("MPI_Win_get_name", setStr(name, resultlen, w.Name(), abi.MaxObjectName))
}
