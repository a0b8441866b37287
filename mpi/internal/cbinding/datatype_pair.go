package cbinding

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	layouts "github.com/weftstack/weft/mpi/internal/datatype"
)

// TypeGetValueIndex is MPI_Type_get_value_index. It stores the predefined pair with these parts, or
// MPI_DATATYPE_NULL if there is none: MPI_MINLOC and MPI_MAXLOC take no other pairs.
func TypeGetValueIndex(valueType, indexType Handle, pairType uintptr) int {
	const proc = "MPI_Type_get_value_index"
	if err := out("pair_type", pairType); err != nil {
		return fail(proc, err)
	}
	value, err := typeOf(valueType)
	if err != nil {
		return fail(proc, err)
	}
	index, err := typeOf(indexType)
	if err != nil {
		return fail(proc, err)
	}
	setHandle(pairType, abi.DatatypeNull)
	if !value.predefined || !index.predefined {
		return 0
	}
	for _, n := range layouts.Predefined() {
		if n.Group == layouts.GroupPair && n.Value.Name == value.Predefined() && n.Index.Name == index.Predefined() {
			setHandle(pairType, Handle(n.ABI))
			return 0
		}
	}
	return 0
}
