package mpi

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
)

// TestContents checks that the datatypes and distributions in Contents are those that the
// program gave.
func TestContents(t *testing.T) {
	basic := MustType(TypeOf[int32]())
	c := basic.Contents()
	if c.Combiner != CombinerNamed || c.Go != reflect.TypeFor[int32]() {
		t.Errorf("contents of a basic type: %+v", c)
	}
	if back, err := c.Build(); back != basic || err != nil {
		t.Errorf("basic type made again: %v, %v", back, err)
	}
	row := MustType(TypeVector(3, 1, 4, basic))
	spread := MustType(TypeDarray(1, []int{4, 2}, []Dist{DistCyclic(1), DistNone()}, []int{2, 1}, RowMajor, row))
	both := MustType(TypeStruct([]int{1, 1}, []int{0, 1 << 20}, []*Datatype{spread, basic}))
	if c := both.Contents(); c.Combiner != CombinerStruct || c.Types[0] != spread || c.Types[1] != basic {
		t.Errorf("contents of a struct: %+v", c)
	}
	c = spread.Contents()
	if c.Combiner != CombinerDarray || c.Types[0] != row || c.Dists[0] != DistCyclic(1) || c.Dists[1] != DistNone() {
		t.Errorf("contents of a distributed array: %+v", c)
	}
	again, err := c.Build()
	if err != nil || again == spread || again.Signature() != spread.Signature() || again.String() != spread.String() {
		t.Errorf("made again: %v, %v; want %v", again, err, spread)
	}
	for _, c := range []Contents{{}, {Combiner: 99, Types: []*Datatype{basic}}, {Combiner: CombinerDup, Types: []*Datatype{nil}}} {
		if _, err := c.Build(); !errors.Is(err, ErrDatatype) {
			t.Errorf("%v: %v", c.Combiner, err)
		}
	}
	if CombinerHindexedBlock.String() != "hindexed block" || Combiner(99).String() != "combiner 99" {
		t.Error("names of combiners")
	}
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
