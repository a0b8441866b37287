package datatype

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// TypeCreateKeyval is MPI_Type_create_keyval.
func TypeCreateKeyval(copyFn, deleteFn, keyval, extra uintptr) int {
	return cbinding.CreateKeyval("MPI_Type_create_keyval", cbinding.OfTypeKey, copyFn, deleteFn, keyval, extra)
}

// TypeFreeKeyval is MPI_Type_free_keyval.
func TypeFreeKeyval(keyval uintptr) int {
	return cbinding.FreeKeyval("MPI_Type_free_keyval", cbinding.OfTypeKey, keyval)
}

// TypeSetAttr is MPI_Type_set_attr.
func TypeSetAttr(datatype abi.Handle, keyval int, value uintptr) int {
	const proc = "MPI_Type_set_attr"
	t, err := cbinding.TypeOf(datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, t.Attrs.SetAttr(datatype, cbinding.OfTypeKey, keyval, value))
}

// TypeGetAttr is MPI_Type_get_attr.
func TypeGetAttr(datatype abi.Handle, keyval int, value, flag uintptr) int {
	const proc = "MPI_Type_get_attr"
	t, err := cbinding.TypeOf(datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, t.Attrs.GetAttr(cbinding.OfTypeKey, keyval, value, flag, nil))
}

// TypeDeleteAttr is MPI_Type_delete_attr.
func TypeDeleteAttr(datatype abi.Handle, keyval int) int {
	const proc = "MPI_Type_delete_attr"
	t, err := cbinding.TypeOf(datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, t.Attrs.DeleteAttr(datatype, cbinding.OfTypeKey, keyval))
}
