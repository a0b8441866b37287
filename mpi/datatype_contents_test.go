package mpi

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// typeLayout is where the data of two items lies, with the bounds.
func typeLayout(t *Datatype) string {
	var runs [][2]int
	for off, n := range t.runs(2) {
		runs = append(runs, [2]int{off, n})
	}
	return fmt.Sprint(runs, t.size, t.lb, t.ub, t.tlb, t.tub, t.align, t.depth, t.Signature())
}

// TestContents makes datatypes with every constructor, one of another, looks at
// what they say of themselves, and makes them again of that.
func TestContents(t *testing.T) {
	basic, err := TypeOf[int32]()
	if err != nil {
		t.Fatal(err)
	}
	last := basic
	if c := basic.Contents(); c.Combiner != CombinerNamed || c.Go != reflect.TypeFor[int32]() || len(c.Integers)+len(c.Types) != 0 {
		t.Errorf("basic type: %+v", c)
	}
	for _, tt := range []struct {
		make func(t *Datatype) (*Datatype, error)
		how  Combiner
		ints []int
	}{
		{func(t *Datatype) (*Datatype, error) { return TypeContiguous(3, t) }, CombinerContiguous, []int{3}},
		{func(t *Datatype) (*Datatype, error) { return TypeVector(2, 1, 3, t) }, CombinerVector, []int{2, 1, 3}},
		{func(t *Datatype) (*Datatype, error) { return TypeHvector(2, 1, 1000, t) }, CombinerHvector, []int{2, 1, 1000}},
		{func(t *Datatype) (*Datatype, error) { return TypeResized(t, 0, 4000) }, CombinerResized, []int{0, 4000}},
		{(*Datatype).Dup, CombinerDup, nil},
		{func(t *Datatype) (*Datatype, error) { return TypeIndexed([]int{1, 2}, []int{0, 3}, t) }, CombinerIndexed, []int{2, 1, 2, 0, 3}},
		{func(t *Datatype) (*Datatype, error) { return TypeHindexed([]int{1}, []int{8}, t) }, CombinerHindexed, []int{1, 1, 8}},
		{func(t *Datatype) (*Datatype, error) { return TypeIndexedBlock(1, []int{2, 0}, t) }, CombinerIndexedBlock, []int{2, 1, 2, 0}},
		{func(t *Datatype) (*Datatype, error) { return TypeHindexedBlock(1, []int{16}, t) }, CombinerHindexedBlock, []int{1, 1, 16}},
		{func(t *Datatype) (*Datatype, error) {
			return TypeStruct([]int{1, 1}, []int{0, 1 << 20}, []*Datatype{t, basic})
		}, CombinerStruct, []int{2, 1, 1, 0, 1 << 20}},
		{func(t *Datatype) (*Datatype, error) {
			return TypeSubarray([]int{2, 3}, []int{1, 2}, []int{1, 0}, ColumnMajor, t)
		}, CombinerSubarray, []int{2, 2, 3, 1, 2, 1, 0, int(ColumnMajor)}},
		{func(t *Datatype) (*Datatype, error) {
			return TypeDarray(1, []int{4, 2}, []Dist{DistCyclic(1), DistNone()}, []int{2, 1}, RowMajor, t)
		}, CombinerDarray, []int{1, 2, 4, 2, 2, 1, int(RowMajor)}},
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
		untyped.Types, none.Types = c.Types[1:], []*Datatype{nil}
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
			if _, err := w.Build(); !errors.Is(err, ErrDatatype) {
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
	for _, c := range []Contents{{}, {Combiner: 99, Types: []*Datatype{basic}}} {
		if _, err := c.Build(); !errors.Is(err, ErrDatatype) {
			t.Errorf("%v: %v", c.Combiner, err)
		}
	}
	if CombinerHindexedBlock.String() != "hindexed block" || Combiner(99).String() != "combiner 99" {
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

// ExampleDatatype_Contents prints what a datatype is made of.
func ExampleDatatype_Contents() {
	item, err := TypeOf[float64]()
	if err != nil {
		fmt.Println(err)
		return
	}
	row, err := TypeVector(3, 1, 4, item)
	if err != nil {
		fmt.Println(err)
		return
	}
	for t := row; ; {
		c := t.Contents()
		fmt.Println(c.Combiner, c.Integers, c.Go)
		if c.Combiner == CombinerNamed {
			break
		}
		t = c.Types[0]
	}
	// Output:
	// vector [3 1 4] <nil>
	// named [] float64
}
