package mpi

import (
	"fmt"
	"testing"
)

// TestDatatypeRuns asks datatypes for their runs, and for what is in a number of bytes.
func TestDatatypeRuns(t *testing.T) {
	item := MustType(NamedType("MPI_INT"))
	three := MustType(TypeVector(3, 2, 4, item))
	if off, n, ok := three.OneRun(1); ok {
		t.Errorf("a vector is the run [%d, +%d)", off, n)
	}
	if off, n, ok := MustType(TypeIndexed([]int{2}, []int{-3}, item)).OneRun(1); off != -12 || n != 8 || !ok {
		t.Errorf("a block is the run [%d, +%d), %v, want [-12, +8)", off, n, ok)
	}
	var got []string
	for off, n := range three.Runs(2) {
		got = append(got, fmt.Sprint(off, "+", n))
	}
	if want := "[0+8 16+8 32+8 40+8 56+8 72+8]"; fmt.Sprint(got) != want {
		t.Errorf("runs %v, want %s", got, want)
	}
	if n, ok := three.ItemsIn(48); n != 2 || !ok {
		t.Errorf("%d items in 48 bytes, %v", n, ok)
	}
	if n, ok := three.ItemsIn(32); n != 1 || ok {
		t.Errorf("%d items in 32 bytes, %v", n, ok)
	}
	if n, ok := three.ElementsIn(32); n != 8 || !ok {
		t.Errorf("%d elements in 32 bytes, %v", n, ok)
	}
	if n, ok := three.ElementsIn(33); n != 8 || ok {
		t.Errorf("%d elements in 33 bytes, %v", n, ok)
	}
}
