package datatype

import (
	"math"
	"testing"
	"unsafe"
)

// SetRun knows the buffers that are one run of memory, and describes them as ItemsAt does.
func TestItemsOfOneRun(t *testing.T) {
	mem := make([]byte, 4096)
	base := unsafe.Pointer(&mem[1024])
	word := OfBytes(8)
	must := func(x *Type, err error) *Type {
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	gaps := must(Vector(3, 1, 2, word))
	shifted := must(Hindexed([]int{3}, []int{-16}, word))
	wide := must(Resized(word, 0, 16))
	for i, x := range []struct {
		t     *Type
		count int
		run   bool
	}{
		{word, 1, true}, {word, 100, true}, {word, 0, false}, {word, -1, false}, {nil, 1, false}, {OfBytes(0), 5, false},
		{gaps, 1, false}, {shifted, 1, true}, {shifted, 2, true}, {wide, 1, true}, {wide, 2, false},
		{word, math.MaxInt / 4, false},
	} {
		var got Items
		if ok := got.SetRun(base, x.count, x.t); ok != x.run {
			t.Errorf("%d: one run: %v, want %v", i, ok, x.run)
		} else if !ok {
			continue
		}
		want, err := ItemsAt(base, x.count, x.t)
		if err != nil || &got.Mem[0] != &want.Mem[0] || len(got.Mem) != len(want.Mem) || got.Elem != want.Elem ||
			got.Sig != want.Sig || got.Type != want.Type || !want.Dense() {
			t.Errorf("%d: %+v, want %+v, %v", i, got, want, err)
		}
		if got.SetRun(nil, x.count, x.t) {
			t.Errorf("%d: one run at MPI_BOTTOM", i)
		}
	}
}
