package mpi

import (
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// namedAliases are second names of predefined datatypes (MPI-4.1, Section 3.2.2).
var namedAliases = map[string]string{
	"MPI_LONG_LONG_INT": "MPI_LONG_LONG",
	"MPI_C_COMPLEX":     "MPI_C_FLOAT_COMPLEX",
}

// namedTypes holds the predefined datatypes of C and Fortran by name.
var namedTypes = sync.OnceValue(func() map[string]*Datatype {
	all := make(map[string]*Datatype)
	for _, n := range datatype.Predefined() {
		t, err := datatypeOf(n.Type, nil)
		if err != nil {
			panic(fmt.Sprintf("mpi: %s: %v", n.Name, err)) // the table is wrong
		}
		t.own.setName(n.Name)
		all[n.Name] = t
	}
	for alias, name := range namedAliases {
		all[alias] = all[name]
	}
	return all
})

// NamedType returns the predefined datatype of C or Fortran with a name of MPI, as MPI_LONG_DOUBLE or
// MPI_DOUBLE_INT (MPI-4.1, Section 3.2.2), laid out as compilers for 64-bit Linux lay it out. Each call
// returns the same. Its name as a datatype is that of MPI. It returns ErrDatatype for a name that is none.
func NamedType(name string) (*Datatype, error) {
	if t := namedTypes()[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: no predefined datatype is called %.40q", ErrDatatype, name)
}

// Predefined returns the name in MPI of the predefined datatype of C or Fortran that t is or is a
// duplicate of, and "" for others (MPI-4.1, Section 5.1.13: MPI_COMBINER_NAMED). Unlike Name it cannot
// be set.
func (t *Datatype) Predefined() string {
	if n := t.typ().Named(); n != nil {
		return n.Name
	}
	return ""
}
