package datatype

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	layouts "github.com/weftstack/weft/mpi/internal/datatype"
)

// TypeGetValueIndex is MPI_Type_get_value_index. It stores the predefined pair with these parts, or
// MPI_DATATYPE_NULL if there is none: MPI_MINLOC and MPI_MAXLOC take no other pairs.
func TypeGetValueIndex(valueType, indexType abi.Handle, pairType uintptr) int {
	const proc = "MPI_Type_get_value_index"
	if err := cbinding.Out("pair_type", pairType); err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.SetHandle(pairType, abi.DatatypeNull)
	value, err := cbinding.TypeOf(valueType)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	index, err := cbinding.TypeOf(indexType)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if !value.IsPredefined || !index.IsPredefined {
		return 0
	}
	for _, n := range layouts.Predefined() {
		if n.Group == layouts.GroupPair && n.Value.Name == value.Predefined() && n.Index.Name == index.Predefined() {
			cbinding.SetHandle(pairType, abi.Handle(n.ABI))
			return 0
		}
	}
	return 0
}
