package cbinding

import "github.com/weftstack/weft/mpi/internal/abi"

// WinCreateKeyval is MPI_Win_create_keyval.
func WinCreateKeyval(copyFn, deleteFn, keyval, extra uintptr) int {
	return createKeyval("MPI_Win_create_keyval", ofWinKey, copyFn, deleteFn, keyval, extra)
}

// WinFreeKeyval is MPI_Win_free_keyval.
func WinFreeKeyval(keyval uintptr) int { return freeKeyval("MPI_Win_free_keyval", ofWinKey, keyval) }

// WinSetAttr is MPI_Win_set_attr.
func WinSetAttr(win Handle, keyval int, value uintptr) int {
	const proc = "MPI_Win_set_attr"
	w, err := winOf(win)
	if err != nil {
		return fail(proc, err)
	}
	return w.done(proc, w.attrs.setAttr(w.handle, ofWinKey, keyval, value))
}

// WinGetAttr is MPI_Win_get_attr.
func WinGetAttr(win Handle, keyval int, value, flag uintptr) int {
	const proc = "MPI_Win_get_attr"
	w, err := winOf(win)
	if err != nil {
		return fail(proc, err)
	}
	if keyval == abi.WinBase { // may be null
		if value == 0 || flag == 0 {
			return w.done(proc, nullError("attribute_val or flag"))
		}
		*at[uintptr](value) = w.base
		return w.done(proc, setFlag(flag, true))
	}
	return w.done(proc, w.attrs.getAttr(ofWinKey, keyval, value, flag, w.predefinedAttr))
}

// WinDeleteAttr is MPI_Win_delete_attr.
func WinDeleteAttr(win Handle, keyval int) int {
	const proc = "MPI_Win_delete_attr"
	w, err := winOf(win)
	if err != nil {
		return fail(proc, err)
	}
	return w.done(proc, w.attrs.deleteAttr(w.handle, ofWinKey, keyval))
}
