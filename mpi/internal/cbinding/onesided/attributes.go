package onesided

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// WinCreateKeyval is MPI_Win_create_keyval.
func WinCreateKeyval(copyFn, deleteFn, keyval, extra uintptr) int {
	return cbinding.CreateKeyval("MPI_Win_create_keyval", cbinding.OfWinKey, copyFn, deleteFn, keyval, extra)
}

// WinFreeKeyval is MPI_Win_free_keyval.
func WinFreeKeyval(keyval uintptr) int {
	return cbinding.FreeKeyval("MPI_Win_free_keyval", cbinding.OfWinKey, keyval)
}

// WinSetAttr is MPI_Win_set_attr.
func WinSetAttr(win abi.Handle, keyval int, value uintptr) int {
	return onWindow("MPI_Win_set_attr", win, func(w *window) error {
		return w.Attrs.SetAttr(w.Handle, cbinding.OfWinKey, keyval, value)
	})
}

// WinGetAttr is MPI_Win_get_attr.
func WinGetAttr(win abi.Handle, keyval int, value, flag uintptr) int {
	const proc = "MPI_Win_get_attr"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if keyval == abi.WinBase { // may be null
		if value == 0 || flag == 0 {
			return w.Done(proc, cbinding.NullError("attribute_val or flag"))
		}
		*cbinding.At[uintptr](value) = w.base
		return w.Done(proc, cbinding.SetFlag(flag, true))
	}
	return w.Done(proc, w.Attrs.GetAttr(cbinding.OfWinKey, keyval, value, flag, w.predefinedAttr))
}

// WinDeleteAttr is MPI_Win_delete_attr.
func WinDeleteAttr(win abi.Handle, keyval int) int {
	return onWindow("MPI_Win_delete_attr", win, func(w *window) error {
		return w.Attrs.DeleteAttr(w.Handle, cbinding.OfWinKey, keyval)
	})
}
