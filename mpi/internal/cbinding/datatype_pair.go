package cbinding

import (
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	layouts "github.com/weftstack/weft/mpi/internal/datatype"
)

// pairs holds the pairs that MPI_Type_get_value_index has made of datatypes that are like the parts of
// a pair with a name.
var pairs struct {
	sync.Mutex
	types map[[2]Handle]*datatype
}

// TypeGetValueIndex is MPI_Type_get_value_index. It stores a pair with a name, or one like it whose
// parts have other names, or else MPI_DATATYPE_NULL: those MPI_MINLOC and MPI_MAXLOC do not take.
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
	var like *layouts.Named
	for _, n := range layouts.Predefined() {
		switch {
		case n.Group != layouts.GroupPair:
		case n.Value.Name == value.Predefined() && n.Index.Name == index.Predefined():
			setHandle(pairType, Handle(n.ABI))
			return 0
		case samePart(n.Value, value) && samePart(n.Index, index):
			like = n
		}
	}
	if like == nil {
		return 0
	}
	pairs.Lock()
	defer pairs.Unlock()
	key := [2]Handle{valueType, indexType}
	if t := pairs.types[key]; t != nil {
		setHandle(pairType, t.handle)
		return 0
	}
	d, err := mpi.NamedType(like.Name)
	if err == nil {
		d, err = d.Dup()
	}
	if err != nil {
		return fail(proc, err)
	}
	t := &datatype{Datatype: d, predefined: true,
		made: recipe{combiner: abi.CombinerValueIndex, types: []*datatype{value, index}}}
	t.committed.Store(true)
	if err := t.publish(pairType); err != nil {
		return fail(proc, err)
	}
	if pairs.types == nil {
		pairs.types = make(map[[2]Handle]*datatype)
	}
	pairs.types[key] = t
	return 0
}

// samePart reports whether values of t are numbers like those of n.
func samePart(n *layouts.Named, t *datatype) bool {
	d, err := mpi.NamedType(n.Name)
	return err == nil && n.Group != layouts.GroupByte && d.Matches(t.Datatype)
}
