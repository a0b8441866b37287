package rma

import (
	"errors"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
)

// TestElemForNamed looks up the element types of all predefined datatypes: their size and signature are those of the
// datatype, and a target knows them by code.
func TestElemForNamed(t *testing.T) {
	words := 0
	for _, n := range datatype.Predefined() {
		vector, err := datatype.Vector(3, 2, 5, n.Type)
		if err != nil {
			t.Fatal(err)
		}
		dup, err := vector.Dup()
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range []*datatype.Type{n.Type, vector, dup} {
			e, err := ElemFor(typ, op.CodeReplace)
			if err != nil || e.Size() != n.Type.Size() || !e.sig.Matches(n.Type.Values()) {
				t.Fatalf("%s: %v, %v", n.Name, e, err)
			}
			there := elemIn(&amHeader{kind: amUpdate, elem: e.code, size: uint32(e.size)})
			if there == nil || there.size != e.size || there.align != e.align || there.word != e.word ||
				(there.gap == nil) != (e.gap == nil) {
				t.Fatalf("%s: the target takes it for %+v", n.Name, there)
			}
			for code := range op.Codes {
				if _, err := op.For(code, n.Type); (err == nil) != (e.ops[code] != nil) {
					t.Errorf("%s: operator %v: %v", n.Name, code, e.ops[code])
				}
				if e.ops[code] != nil && there.ops[code] == nil {
					t.Errorf("%s: the target has no %v", n.Name, code)
				}
			}
			if elemIn(&amHeader{kind: amUpdate, elem: e.code, size: uint32(e.size) + 1}) != nil {
				t.Errorf("%s: the target takes another size", n.Name)
			}
			if e.word {
				words++
			}
		}
		if gap := n.Name == "MPI_SHORT_INT"; (namedElems()[namedIndex()[n]].gap != nil) != gap {
			t.Errorf("%s: has gaps: %v", n.Name, !gap)
		}
	}
	if words < 3*8 { // the integers of 64 bits
		t.Errorf("%d datatypes are updated by processor atomics", words/3)
	}
	if e := elemIn(&amHeader{kind: amUpdate, elem: 255, size: 8}); e != nil {
		t.Errorf("code 255 is %v", e)
	}
}

// TestElemForMixed asks for the element type of datatypes that are not of one predefined datatype.
func TestElemForMixed(t *testing.T) {
	i32, err := datatype.Of[int32]()
	if err != nil {
		t.Fatal(err)
	}
	var float *datatype.Type
	for _, n := range datatype.Predefined() {
		if n.Name == "MPI_FLOAT" {
			float = n.Type
		}
	}
	mixed, err := datatype.Struct([]int{1, 1}, []int{0, 4}, []*datatype.Type{i32, float})
	if err != nil {
		t.Fatal(err)
	}
	alone, err := datatype.Struct([]int{2, 0}, []int{0, 8}, []*datatype.Type{i32, float})
	if err != nil {
		t.Fatal(err)
	}
	for name, typ := range map[string]*datatype.Type{"two types": mixed, "none": nil} {
		if _, err := ElemFor(typ, op.CodeSum); !errors.Is(err, mpierr.ErrDatatype) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e, err := ElemFor(mixed, op.CodeReplace); err != nil || e.Size() != 1 {
		t.Errorf("replacing items of two types: %v, %v", e, err)
	}
	if e, err := ElemFor(alone, op.CodeSum); err != nil || e.code != elemInt32 {
		t.Errorf("a block without items counts: %v, %v", e, err)
	}
	if e, err := ElemFor(i32, op.CodeSum); err != nil || e.code != elemInt32 {
		t.Errorf("a Go type: %v, %v", e, err)
	}
}
