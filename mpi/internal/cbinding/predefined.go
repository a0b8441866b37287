package cbinding

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	layouts "github.com/weftstack/weft/mpi/internal/datatype"
)

func init() {
	atStart(func() {
		for _, n := range layouts.Predefined() {
			t, err := mpi.NamedType(n.Name)
			if err != nil {
				panic(fmt.Sprintf("mpi: %s: %v", n.Name, err)) // the table of predefined datatypes is wrong
			}
			d := &datatype{Datatype: t, handle: Handle(n.ABI), predefined: true, made: recipe{combiner: abi.CombinerNamed}}
			d.committed.Store(true)
			types.set(d.handle, d)
			CacheType(d.handle, t.Size())
		}
		groups.set(abi.GroupEmpty, &group{})
	})
}
