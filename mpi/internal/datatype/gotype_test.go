package datatype

import (
	"errors"
	"testing"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// TestOfStruct compares the datatypes of structs with what Struct makes of their fields (MPI-4.1,
// Section 5.1.2), and looks which have gaps.
func TestOfStruct(t *testing.T) {
	i8, i16, f64 := must(Of[int8]()), must(Of[int16]()), must(Of[float64]())
	whole := must(Struct([]int{1, 1, 2, 1}, []int{0, 2, 4, 8}, []*Type{i8, i16, i8, i8}))
	d := must(Of[padded]())
	if d.Size() != 6 || d.Extent() != 12 || !d.Matches(whole) {
		t.Errorf("%v of %s, want 6 bytes in [0, 12) of %s", d, d.Signature(), whole.Signature())
	}
	var runs []Run
	for off, n := range d.Runs(2) {
		runs = append(runs, Run{off, n})
	}
	want := []Run{{0, 1}, {2, 4}, {8, 1}, {12, 1}, {14, 4}, {20, 1}}
	if len(runs) != len(want) {
		t.Fatalf("runs %v, want %v", runs, want)
	}
	for i, r := range runs {
		if r != want[i] {
			t.Errorf("run %d is %v, want %v", i, r, want[i])
		}
	}
	type dense struct {
		A [3]odd
		B [7]int8
		C struct{ X, Y float64 }
	}
	d = must(Of[dense]())
	if off, n, ok := d.OneRun(5); off != 0 || n != 160 || !ok {
		t.Errorf("items of a struct without padding: [%d, +%d), %v", off, n, ok)
	}
	if want := must(Struct([]int{9, 7, 2}, []int{0, 9, 16}, []*Type{must(Of[byte]()), i8, f64})); !d.Matches(want) {
		t.Errorf("%s does not match %s", d.Signature(), want.Signature())
	}
	type tail struct {
		A int64
		B struct{}
	}
	if d = must(Of[tail]()); d.Size() != 8 || d.Extent() != 16 {
		t.Errorf("a struct with an empty field at its end is %v", d)
	}
	if d = must(Of[struct{}]()); d.Size() != 0 || d.Extent() != 0 {
		t.Errorf("an empty struct is %v", d)
	}
}

// TestElementGaps looks which elements have padding.
func TestElementGaps(t *testing.T) {
	if _, gaps, err := Element[padded](); gaps == nil || gaps.Size() != 6 || err != nil {
		t.Errorf("element with padding: %v, %v", gaps, err)
	}
	if _, gaps, err := Element[odd](); gaps != nil || err != nil {
		t.Errorf("element without padding: %v, %v", gaps, err)
	}
	if _, _, err := Element[struct{ P *int }](); !errors.Is(err, mpierr.ErrType) {
		t.Errorf("element with a pointer: %v, want %v", err, mpierr.ErrType)
	}
	if a, b, c := DataSize[padded](), DataSize[odd](), DataSize[int32](); a != 6 || b != 3 || c != 4 {
		t.Errorf("data of %d, %d and %d bytes, want 6, 3 and 4", a, b, c)
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = Element[padded]() }); n != 0 {
		t.Errorf("asking for an element allocates %v times", n)
	}
}
