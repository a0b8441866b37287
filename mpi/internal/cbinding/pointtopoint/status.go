package pointtopoint

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// statusAt returns the status at p, where MPI_STATUS_IGNORE is not allowed.
func statusAt(p uintptr) (*abi.Status, error) {
	if p == abi.StatusIgnore {
		return nil, cbinding.ArgError(abi.ErrArg, "status", "MPI_STATUS_IGNORE", "is not allowed here")
	}
	return cbinding.At[abi.Status](p), nil
}

// statusAndType returns the status at p and a datatype to count what it describes.
func statusAndType(p uintptr, h abi.Handle) (*abi.Status, *cbinding.Datatype, error) {
	s, err := statusAt(p)
	if err != nil {
		return nil, nil, err
	}
	t, err := cbinding.TypeOf(h)
	return s, t, err
}

// GetCount is MPI_Get_count.
func GetCount(status uintptr, datatype abi.Handle, count uintptr, large bool) int {
	const proc = "MPI_Get_count"
	s, t, err := statusAndType(status, datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	n, whole := t.ItemsIn(cbinding.StatusBytes(s))
	if !whole {
		n = abi.Undefined
	}
	return cbinding.Fail(proc, cbinding.SetInt(count, n, large))
}

// GetElements is MPI_Get_elements.
func GetElements(status uintptr, datatype abi.Handle, count uintptr, large bool) int {
	return getElements("MPI_Get_elements", status, datatype, count, large)
}

// GetElementsX is MPI_Get_elements_x.
func GetElementsX(status uintptr, datatype abi.Handle, count uintptr) int {
	return getElements("MPI_Get_elements_x", status, datatype, count, true)
}

func getElements(proc string, status uintptr, datatype abi.Handle, count uintptr, large bool) int {
	s, t, err := statusAndType(status, datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	n, whole := t.ElementsIn(cbinding.StatusBytes(s))
	if !whole {
		n = abi.Undefined
	}
	return cbinding.Fail(proc, cbinding.SetInt(count, n, large))
}

// StatusSetElements is MPI_Status_set_elements.
func StatusSetElements(status uintptr, datatype abi.Handle, count int) int {
	return setElements("MPI_Status_set_elements", status, datatype, count)
}

// StatusSetElementsX is MPI_Status_set_elements_x.
func StatusSetElementsX(status uintptr, datatype abi.Handle, count int) int {
	return setElements("MPI_Status_set_elements_x", status, datatype, count)
}

func setElements(proc string, status uintptr, datatype abi.Handle, count int) int {
	s, t, err := statusAndType(status, datatype)
	if err == nil {
		err = cbinding.Negative("count", count)
	}
	var st mpi.Status
	if err == nil {
		err = st.SetElements(t.Datatype, count)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.SetStatusBytes(s, st.Bytes)
	return 0
}

// StatusSetCancelled is MPI_Status_set_cancelled.
func StatusSetCancelled(status uintptr, flag int) int {
	_, err := statusAt(status)
	if err == nil {
		cbinding.SetCancelled(status, flag != 0)
	}
	return cbinding.Fail("MPI_Status_set_cancelled", err)
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
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetInt(result, int(*field(s)), false))
}

func setField(proc string, status uintptr, v int, field func(*abi.Status) *int32) int {
	s, err := statusAt(status)
	if err != nil {
		return cbinding.Fail(proc, err)
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
		return cbinding.Fail(proc, err)
	}
	t, err := statusAt(to)
	if err == nil {
		*t = *s
	}
	return cbinding.Fail(proc, err)
}
