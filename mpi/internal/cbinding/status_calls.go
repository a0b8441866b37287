package cbinding

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// statusAt returns the status at p, where MPI_STATUS_IGNORE is not allowed.
func statusAt(p uintptr) (*abi.Status, error) {
	if p == abi.StatusIgnore {
		return nil, argError(abi.ErrArg, "status", "MPI_STATUS_IGNORE", "is not allowed here")
	}
	return at[abi.Status](p), nil
}

// statusAndType returns the status at p and a datatype to count what it describes.
func statusAndType(p uintptr, h Handle) (*abi.Status, *datatype, error) {
	s, err := statusAt(p)
	if err != nil {
		return nil, nil, err
	}
	t, err := typeOf(h)
	return s, t, err
}

// GetCount is MPI_Get_count.
func GetCount(status uintptr, datatype Handle, count uintptr, large bool) int {
	const proc = "MPI_Get_count"
	s, t, err := statusAndType(status, datatype)
	if err != nil {
		return fail(proc, err)
	}
	n, whole := t.ItemsIn(statusBytes(s))
	if !whole {
		n = abi.Undefined
	}
	return fail(proc, setInt(count, n, large))
}

// GetElements is MPI_Get_elements.
func GetElements(status uintptr, datatype Handle, count uintptr, large bool) int {
	return getElements("MPI_Get_elements", status, datatype, count, large)
}

// GetElementsX is MPI_Get_elements_x.
func GetElementsX(status uintptr, datatype Handle, count uintptr) int {
	return getElements("MPI_Get_elements_x", status, datatype, count, true)
}

func getElements(proc string, status uintptr, datatype Handle, count uintptr, large bool) int {
	s, t, err := statusAndType(status, datatype)
	if err != nil {
		return fail(proc, err)
	}
	n, whole := t.ElementsIn(statusBytes(s))
	if !whole {
		n = abi.Undefined
	}
	return fail(proc, setInt(count, n, large))
}

// StatusSetElements is MPI_Status_set_elements.
func StatusSetElements(status uintptr, datatype Handle, count int) int {
	return setElements("MPI_Status_set_elements", status, datatype, count)
}

// StatusSetElementsX is MPI_Status_set_elements_x.
func StatusSetElementsX(status uintptr, datatype Handle, count int) int {
	return setElements("MPI_Status_set_elements_x", status, datatype, count)
}

func setElements(proc string, status uintptr, datatype Handle, count int) int {
	s, t, err := statusAndType(status, datatype)
	if err == nil {
		err = negative("count", count)
	}
	var st mpi.Status
	if err == nil {
		err = st.SetElements(t.Datatype, count)
	}
	if err != nil {
		return fail(proc, err)
	}
	setStatusBytes(s, st.Bytes)
	return 0
}

// StatusSetCancelled is MPI_Status_set_cancelled.
func StatusSetCancelled(status uintptr, flag int) int {
	_, err := statusAt(status)
	if err == nil {
		setCancelled(status, flag != 0)
	}
	return fail("MPI_Status_set_cancelled", err)
}

// StatusGetSource is MPI_Status_get_source.
func StatusGetSource(status, source uintptr) int {
	return getField("MPI_Status_get_source", status, source, func(s *abi.Status) *int32 { return &s.Source })
}

// StatusGetTag is MPI_Status_get_tag.
func StatusGetTag(status, tag uintptr) int {
	return getField("MPI_Status_get_tag", status, tag, func(s *abi.Status) *int32 { return &s.Tag })
}

// StatusGetError is MPI_Status_get_error.
func StatusGetError(status, err uintptr) int {
	return getField("MPI_Status_get_error", status, err, func(s *abi.Status) *int32 { return &s.Error })
}

// StatusSetSource is MPI_Status_set_source.
func StatusSetSource(status uintptr, source int) int {
	return setField("MPI_Status_set_source", status, source, func(s *abi.Status) *int32 { return &s.Source })
}

// StatusSetTag is MPI_Status_set_tag.
func StatusSetTag(status uintptr, tag int) int {
	return setField("MPI_Status_set_tag", status, tag, func(s *abi.Status) *int32 { return &s.Tag })
}

// StatusSetError is MPI_Status_set_error.
func StatusSetError(status uintptr, err int) int {
	return setField("MPI_Status_set_error", status, err, func(s *abi.Status) *int32 { return &s.Error })
}

func getField(proc string, status, result uintptr, field func(*abi.Status) *int32) int {
	s, err := statusAt(status)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, setInt(result, int(*field(s)), false))
}

func setField(proc string, status uintptr, v int, field func(*abi.Status) *int32) int {
	s, err := statusAt(status)
	if err != nil {
		return fail(proc, err)
	}
	*field(s) = int32(v)
	return 0
}

// StatusF082f is MPI_Status_f082f: both forms have the layout of C.
func StatusF082f(f08Status, fStatus uintptr) int {
	return copyStatus("MPI_Status_f082f", fStatus, f08Status)
}

// StatusF2f08 is MPI_Status_f2f08.
func StatusF2f08(fStatus, f08Status uintptr) int {
	return copyStatus("MPI_Status_f2f08", f08Status, fStatus)
}

func copyStatus(proc string, to, from uintptr) int {
	s, err := statusAt(from)
	if err != nil {
		return fail(proc, err)
	}
	t, err := statusAt(to)
	if err == nil {
		*t = *s
	}
	return fail(proc, err)
}
