package datatype

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// typeLayout is where the data of two items lies, with the bounds.
func typeLayout(t *Type) string {
	var runs [][2]int
	for off, n := range t.Runs(2) {
		runs = append(runs, [2]int{off, n})
	}
	return fmt.Sprint(runs, t.size, t.lb, t.ub, t.tlb, t.tub, t.align, t.depth, t.Signature())
}

// TestContents makes datatypes with every constructor, one of another, looks at
// what they say of themselves, and makes them again of that.
func TestContents(t *testing.T) {
	basic, err := Of[int32]()
	if err != nil {
		t.Fatal(err)
	}
	last := basic
	if c := basic.Contents(); c.Combiner != CombinerNamed || c.Go != reflect.TypeFor[int32]() || len(c.Integers)+len(c.Types) != 0 {
		t.Errorf("basic type: %+v", c)
	}
	for _, tt := range []struct {
		make func(t *Type) (*Type, error)
		how  int
		ints []int
	}{
		{func(t *Type) (*Type, error) { return Contiguous(3, t) }, CombinerContiguous, []int{3}},
		{func(t *Type) (*Type, error) { return Vector(2, 1, 3, t) }, CombinerVector, []int{2, 1, 3}},
		{func(t *Type) (*Type, error) { return Hvector(2, 1, 1000, t) }, CombinerHvector, []int{2, 1, 1000}},
		{func(t *Type) (*Type, error) { return Resized(t, 0, 4000) }, CombinerResized, []int{0, 4000}},
		{(*Type).Dup, CombinerDup, nil},
		{func(t *Type) (*Type, error) { return Indexed([]int{1, 2}, []int{0, 3}, t) }, CombinerIndexed, []int{2, 1, 2, 0, 3}},
		{func(t *Type) (*Type, error) { return Hindexed([]int{1}, []int{8}, t) }, CombinerHindexed, []int{1, 1, 8}},
		{func(t *Type) (*Type, error) { return IndexedBlock(1, []int{2, 0}, t) }, CombinerIndexedBlock, []int{2, 1, 2, 0}},
		{func(t *Type) (*Type, error) { return HindexedBlock(1, []int{16}, t) }, CombinerHindexedBlock, []int{1, 1, 16}},
		{func(t *Type) (*Type, error) {
			return Struct([]int{1, 1}, []int{0, 1 << 20}, []*Type{t, basic})
		}, CombinerStruct, []int{2, 1, 1, 0, 1 << 20}},
		{func(t *Type) (*Type, error) {
			return Subarray([]int{2, 3}, []int{1, 2}, []int{1, 0}, ColumnMajor, t)
		}, CombinerSubarray, []int{2, 2, 3, 1, 2, 1, 0, ColumnMajor}},
		{func(t *Type) (*Type, error) {
			return Darray(1, []int{4, 2}, []Dist{{DistCyclic, 1}, {}}, []int{2, 1}, RowMajor, t)
		}, CombinerDarray, []int{1, 2, 4, 2, 2, 1, RowMajor}},
	} {
		made, err := tt.make(last)
		if err != nil {
			t.Fatalf("%v: %v", tt.how, err)
		}
		c := made.Contents()
		if c.Combiner != tt.how || !slices.Equal(c.Integers, tt.ints) || len(c.Types) == 0 || c.Types[0] != last {
			t.Errorf("%v: contents %+v, want integers %v", tt.how, c, tt.ints)
		}
		again, err := c.Build()
		if err != nil || typeLayout(again) != typeLayout(made) {
			t.Errorf("%v: made again: %v\n%s\n%s", tt.how, err, typeLayout(again), typeLayout(made))
		}
		// Of the wrong number of integers, or types, nothing can be made.
		long, short, untyped, none := c, c, c, c
		long.Integers = append(slices.Clone(c.Integers), 1)
		untyped.Types, none.Types = c.Types[1:], []*Type{nil}
		wrong := map[string]Contents{"long": long, "without a type": untyped, "with nil": none}
		if len(c.Integers) > 0 {
			short.Integers = c.Integers[:len(c.Integers)-1]
			wrong["short"] = short
			negative := c
			negative.Integers = slices.Clone(c.Integers)
			negative.Integers[0] = -1
			if tt.how != CombinerResized {
				wrong["negative"] = negative
			}
		}
		for name, w := range wrong {
			if _, err := w.Build(); !errors.Is(err, mpierr.ErrDatatype) {
				t.Errorf("%v, %s: %v", tt.how, name, err)
			}
		}
		c.Integers = append(c.Integers, 0) // they are the caller's
		clear(c.Integers)
		clear(c.Types)
		if d := made.Contents(); !slices.Equal(d.Integers, tt.ints) || d.Types[0] != last {
			t.Errorf("%v: changed to %+v", tt.how, d)
		}
		last = made
	}
	if back, err := basic.Contents().Build(); back != basic || err != nil {
		t.Errorf("basic type made again: %v, %v", back, err)
	}
	for _, c := range []Contents{{}, {Combiner: 99, Types: []*Type{basic}}} {
		if _, err := c.Build(); !errors.Is(err, mpierr.ErrDatatype) {
			t.Errorf("%v: %v", c.Combiner, err)
		}
	}
	if CombinerName(CombinerHindexedBlock) != "hindexed block" || CombinerName(99) != "combiner 99" {
		t.Error("names of combiners")
	}
}

// TestContentsOfAnything makes random datatypes again of what they say.
func TestContentsOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		made, _ := drawType(t, 4)
		again, err := made.Contents().Build()
		if err != nil || typeLayout(again) != typeLayout(made) {
			t.Fatalf("%+v: %v", made.Contents(), err)
		}
	})
}
