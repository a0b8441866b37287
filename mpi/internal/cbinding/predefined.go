package cbinding

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	layouts "github.com/weftstack/weft/mpi/internal/datatype"
)

func init() {
	AtStart(func() {
		for _, n := range layouts.Predefined() {
			t, err := mpi.NamedType(n.Name)
			if err != nil {
				panic(fmt.Sprintf("mpi: %s: %v", n.Name, err)) // the table of predefined datatypes is wrong
			}
			d := &Datatype{Datatype: t, Handle: abi.Handle(n.ABI), IsPredefined: true, Made: Recipe{Combiner: abi.CombinerNamed}}
			d.Committed.Store(true)
			Types.Set(d.Handle, d)
			CacheType(d.Handle, t.Size())
		}
		Groups.Set(abi.GroupEmpty, &Group{})
	})
}
