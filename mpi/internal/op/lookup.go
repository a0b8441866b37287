package op

import (
	"fmt"
	"reflect"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

var codeNames = [Codes]string{"user", "sum", "prod", "min", "max", "land", "lor", "lxor", "band", "bor", "bxor",
	"minloc", "maxloc", "replace", "no-op"}

// String returns the name of the operator, as Reducer.Name.
func (c Code) String() string {
	if c < Codes {
		return codeNames[c]
	}
	return fmt.Sprintf("operator %d", uint8(c))
}

// groups lists the groups of predefined datatypes that the operators take (MPI-4.1, Section 6.9.2;
// for MINLOC and MAXLOC Section 6.9.4, for REPLACE and NO_OP, which take all, Section 12.3.4).
var groups = func() (g [Codes][]datatype.Group) {
	ordered := []datatype.Group{datatype.GroupCInteger, datatype.GroupFortranInteger, datatype.GroupFloat,
		datatype.GroupMultiLanguage}
	number := append(ordered[:len(ordered):len(ordered)], datatype.GroupComplex)
	// Logical operators of addresses, offsets and counts, which are integers of C, are in use too.
	logical := []datatype.Group{datatype.GroupCInteger, datatype.GroupLogical, datatype.GroupMultiLanguage}
	integer := []datatype.Group{datatype.GroupCInteger, datatype.GroupFortranInteger, datatype.GroupByte,
		datatype.GroupMultiLanguage}
	pair := []datatype.Group{datatype.GroupPair}
	g[CodeSum], g[CodeProd], g[CodeMin], g[CodeMax] = number, number, ordered, ordered
	g[CodeLand], g[CodeLor], g[CodeLxor] = logical, logical, logical
	g[CodeBand], g[CodeBor], g[CodeBxor] = integer, integer, integer
	g[CodeMinLoc], g[CodeMaxLoc] = pair, pair
	return g
}()

// For returns a predefined operator on items of a datatype that is known at run time: a predefined
// one of C or Fortran, or that of a Go type. Operands are packed items: a pair of a double and an
// int has 12 bytes. They need not be aligned. It returns mpierr.ErrOp for a datatype that the
// operator does not take.
func For(code Code, t *datatype.Type) (Reducer, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: %v of no datatype", mpierr.ErrDatatype, code)
	}
	switch code {
	case CodeReplace:
		return Replace{}, nil
	case CodeNoOp:
		return NoOp{}, nil
	}
	if n := t.Named(); n != nil {
		group := n.Group
		if n.Name == "MPI_CHAR" {
			// Not among the types of Section 6.9.2, but programs reduce it, and other implementations let them.
			group = datatype.GroupCInteger
		}
		if code < Codes && takes(code, group) {
			if red := tableOf(n)[code]; red != nil {
				return red, nil
			}
		}
		return nil, fmt.Errorf("%w: %v of %s", mpierr.ErrOp, code, n.Name)
	}
	if c := t.Contents(); code < Codes && c.Combiner == datatype.CombinerNamed && c.Go != nil {
		if red := Predefined(c.Go.Kind())[code]; red != nil {
			return red, nil
		}
		return nil, fmt.Errorf("%w: %v of %v", mpierr.ErrOp, code, c.Go)
	}
	return nil, fmt.Errorf("%w: %v of %v, which is not predefined", mpierr.ErrOp, code, t)
}

func takes(code Code, group datatype.Group) bool {
	for _, g := range groups[code] {
		if g == group {
			return true
		}
	}
	return false
}

// tableOf returns the operators on the representation of a predefined datatype.
func tableOf(n *datatype.Named) Table {
	switch {
	case n.Group == datatype.GroupPair:
		return pairOps(n)
	case n.Format != nil && n.Group == datatype.GroupComplex:
		return softComplexOps[n.Format]
	case n.Format != nil:
		return softOps[n.Format]
	case n.Group == datatype.GroupFloat || n.Group == datatype.GroupComplex:
		return Predefined(floatKinds[n.Group == datatype.GroupComplex][n.Size()])
	case n.Size() == 16:
		return int128Ops
	}
	return Predefined(intKinds[n.Class() == "uint"][n.Size()]) // also logical: 0 is false
}

var (
	floatKinds = map[bool]map[int]reflect.Kind{ // by whether they are complex, and by size
		false: {4: reflect.Float32, 8: reflect.Float64},
		true:  {8: reflect.Complex64, 16: reflect.Complex128},
	}
	intKinds = map[bool]map[int]reflect.Kind{ // by whether they are unsigned, and by size
		false: {1: reflect.Int8, 2: reflect.Int16, 4: reflect.Int32, 8: reflect.Int64},
		true:  {1: reflect.Uint8, 2: reflect.Uint16, 4: reflect.Uint32, 8: reflect.Uint64},
	}
)
