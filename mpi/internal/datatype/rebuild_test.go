package datatype

import (
	"bytes"
	"slices"
	"testing"
)

// Runs of what is rebuilt of opaque elements of the same size are those of the datatype, and with
// elements of twice the size those of places that count items are twice as far apart.
func TestRebuild(t *testing.T) {
	num, char := must(Of[int32]()), must(Of[int8]())
	array := must(Subarray([]int{6, 8}, []int{3, 4}, []int{2, 1}, RowMajor, num))
	byBytes := must(Hindexed([]int{1, 2}, []int{40, 4}, num))
	mixed := must(Struct([]int{2, 1}, []int{0, 12}, []*Type{char, must(Vector(2, 1, 3, num))}))
	for _, typ := range []*Type{num, array, byBytes, mixed, must(mixed.Dup()), must(Resized(array, -8, 400)),
		must(Darray(1, []int{20}, []Dist{{Kind: DistCyclic, Size: 3}}, []int{2}, ColumnMajor, num))} {
		same := must(typ.Rebuild(func(t *Type) (*Type, error) { return Opaque(t.Size()), nil }))
		if same.Extent() != typ.Extent() && typ != mixed || !slices.Equal(runsOf(same), runsOf(typ)) {
			t.Errorf("%v: rebuilt %v with the runs %v, want %v", typ, same, runsOf(same), runsOf(typ))
		}
	}
	twice := must(array.Rebuild(func(t *Type) (*Type, error) { return Opaque(2 * t.Size()), nil }))
	want := runsOf(array)
	for i := range want {
		want[i].Off, want[i].Len = 2*want[i].Off, 2*want[i].Len
	}
	if !slices.Equal(runsOf(twice), want) || twice.Extent() != 2*array.Extent() {
		t.Errorf("runs %v, want %v", runsOf(twice), want)
	}
	if _, err := (*Type)(nil).Rebuild(nil); err == nil {
		t.Error("no datatype was rebuilt")
	}
}

// A datatype of 2^60 parts is rebuilt in time, each part once.
func TestRebuildDeep(t *testing.T) {
	typ := must(Of[int8]())
	for range 60 {
		typ = must(Struct([]int{0, 1}, []int{0, 1}, []*Type{typ, typ}))
	}
	calls := 0
	must(typ.Rebuild(func(t *Type) (*Type, error) { calls++; return t, nil }))
	if calls != 1 {
		t.Errorf("leaf called %d times", calls)
	}
}

func TestPrefixAndExternal(t *testing.T) {
	typ := must(Struct([]int{1, 1}, []int{0, 8}, []*Type{must(Of[int16]()), must(Of[int64]())}))
	for n, want := range []int{0, 2, 10, 12, 20} {
		if got := typ.Prefix(n); got != want {
			t.Errorf("%d elements have %d bytes, want %d", n, got, want)
		}
	}
	packed := []byte{1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0, 0}
	ext := make([]byte, 20)
	if err := typ.ExternalTo(ext, packed, 2); err != nil {
		t.Fatal(err)
	}
	for cut := range 21 {
		back := make([]byte, 20)
		n := typ.ExternalFrom(back, ext[:cut], 2)
		want := 0
		for k := range 5 {
			if p := typ.Prefix(k); p <= cut {
				want = p
			}
		}
		if n != want || !bytes.Equal(back[:n], packed[:n]) {
			t.Errorf("of %d bytes %d were converted to %v, want %d", cut, n, back, want)
		}
	}
}

func runsOf(t *Type) []Run {
	var runs []Run
	for off, n := range t.Runs(1) {
		runs = append(runs, Run{off, n})
	}
	return runs
}
