package datatype

import (
	"fmt"
	"reflect"
)

// Of returns the datatype of one T. That of a struct is what Struct makes of its fields, with the
// size of the struct as extent: its padding is a gap (MPI-4.1, Section 5.1.2). It returns
// mpierr.ErrType if T holds pointers.
func Of[T any]() (*Type, error) { return OfGo(reflect.TypeFor[T]()) }

// OfGo is Of for a type that is known at run time.
func OfGo(goType reflect.Type) (*Type, error) {
	e, err := elementOf(goType)
	if err != nil {
		return nil, err
	}
	t := e.typ.like()
	t.made = &Contents{Combiner: CombinerNamed, Go: goType, Named: t}
	t.base = t
	return t, nil
}

// ofGo returns the datatype of a type without pointers, without contents.
func ofGo(t reflect.Type) *Type {
	size := int(t.Size())
	var parts *Type
	var err error
	switch t.Kind() {
	case reflect.Struct:
		var lens, displs []int
		var types []*Type
		for f := range t.Fields() {
			lens, displs, types = append(lens, 1), append(displs, int(f.Offset)), append(types, ofGo(f.Type))
		}
		parts, err = Struct(lens, displs, types)
	case reflect.Array:
		parts, err = Contiguous(t.Len(), ofGo(t.Elem()))
	default:
		parts = &Type{root: run(0, size), size: size, tub: size, sig: basicSignature(basicLayout(t))}
	}
	if err != nil {
		panic(fmt.Sprintf("mpi: %v: %v", t, err)) // values of Go types fit the memory
	}
	all := parts.like()
	all.lb, all.ub, all.marked, all.align, all.depth = 0, size, false, t.Align(), 0
	all.values = SigOf(t)
	return all
}

// basicTypes has the type whose layout stands for all basic values of a kind and a length.
var basicTypes = map[Sig]reflect.Type{
	sigInt.of(1): reflect.TypeFor[int8](), sigInt.of(2): reflect.TypeFor[int16](),
	sigInt.of(4): reflect.TypeFor[int32](), sigInt.of(8): reflect.TypeFor[int64](),
	sigUint.of(1): reflect.TypeFor[uint8](), sigUint.of(2): reflect.TypeFor[uint16](),
	sigUint.of(4): reflect.TypeFor[uint32](), sigUint.of(8): reflect.TypeFor[uint64](),
	sigFloat.of(4): reflect.TypeFor[float32](), sigFloat.of(8): reflect.TypeFor[float64](),
	sigComplex.of(8): reflect.TypeFor[complex64](), sigComplex.of(16): reflect.TypeFor[complex128](),
	sigBool.of(1): reflect.TypeFor[bool](),
}

// basicLayout returns the layout of a basic value, whatever its type is called: int is int64 where
// it is as long, and time.Duration is too.
func basicLayout(t reflect.Type) *Layout {
	if words, _, ok := sigWords(t); ok && len(words) == 1 && basicTypes[words[0]] != nil {
		t = basicTypes[words[0]]
	}
	return LayoutOf(t)
}
