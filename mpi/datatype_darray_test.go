package mpi

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// TestTypeDarray packs the parts of all ranks and looks whose each item is.
func TestTypeDarray(t *testing.T) {
	f, err := TypeOf[int32]()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		sizes []int
		dists []Dist
		grid  []int
		owner func(at []int) []int // coordinates in the grid
	}{
		{"block", []int{10}, []Dist{DistBlock(0)}, []int{4}, func(at []int) []int { return []int{at[0] / 3} }},
		{"block of 5", []int{10}, []Dist{DistBlock(5)}, []int{4}, func(at []int) []int { return []int{at[0] / 5} }},
		{"cyclic", []int{10}, []Dist{DistCyclic(0)}, []int{3}, func(at []int) []int { return []int{at[0] % 3} }},
		{"all", []int{4, 9, 7}, []Dist{DistNone(), DistCyclic(2), DistBlock(0)}, []int{1, 2, 3},
			func(at []int) []int { return []int{0, at[1] / 2 % 2, at[2] / 3} }},
	} {
		for _, order := range []Order{RowMajor, ColumnMajor} {
			n, ranks := 1, 1
			for i := range tt.sizes {
				n, ranks = n*tt.sizes[i], ranks*tt.grid[i]
			}
			array := make([]int32, n)
			for i := range array {
				array[i] = int32(i)
			}
			for rank := range ranks {
				var want []int32
				for i := range n {
					at, rest := make([]int, len(tt.sizes)), i
					for k := range at {
						j := len(at) - 1 - k
						if order == ColumnMajor {
							j = k
						}
						at[j] = rest % tt.sizes[j]
						rest /= tt.sizes[j]
					}
					owner := 0
					for j, x := range tt.owner(at) {
						owner = owner*tt.grid[j] + x
					}
					if owner == rank {
						want = append(want, int32(i))
					}
				}
				d, err := TypeDarray(rank, tt.sizes, tt.dists, tt.grid, order, f)
				if err != nil {
					t.Fatal(err)
				}
				b, err := AppendPacked(nil, array, 1, d)
				if err != nil {
					t.Fatal(err)
				}
				if got := datatype.View[int32](b); !slices.Equal(got, want) {
					t.Errorf("%s, order %d, rank %d: %v, want %v", tt.name, order, rank, got, want)
				}
				if _, e := d.Extent(); e != 4*n {
					t.Errorf("%s: extent %d, want %d", tt.name, e, 4*n)
				}
			}
		}
	}
	for name, make := range map[string]func() (*Datatype, error){
		"rank": func() (*Datatype, error) { return TypeDarray(3, []int{4}, []Dist{DistBlock(0)}, []int{3}, RowMajor, f) },
		"below 0": func() (*Datatype, error) {
			return TypeDarray(-1, []int{4}, []Dist{DistBlock(0)}, []int{3}, RowMajor, f)
		},
		"block":      func() (*Datatype, error) { return TypeDarray(0, []int{9}, []Dist{DistBlock(2)}, []int{4}, RowMajor, f) },
		"whole":      func() (*Datatype, error) { return TypeDarray(0, []int{9}, []Dist{DistNone()}, []int{2}, RowMajor, f) },
		"grid":       func() (*Datatype, error) { return TypeDarray(0, []int{9}, []Dist{DistBlock(0)}, []int{0}, RowMajor, f) },
		"dimensions": func() (*Datatype, error) { return TypeDarray(0, []int{9}, nil, nil, RowMajor, f) },
		"nothing":    func() (*Datatype, error) { return TypeDarray(0, []int{0}, []Dist{DistBlock(0)}, []int{1}, RowMajor, f) },
		"huge": func() (*Datatype, error) {
			return TypeDarray(0, []int{5, math.MaxInt / 2}, []Dist{DistNone(), DistBlock(0)}, []int{1, 1}, RowMajor, f)
		},
		"no type": func() (*Datatype, error) {
			return TypeDarray(0, []int{9}, []Dist{DistBlock(0)}, []int{1}, RowMajor, nil)
		},
	} {
		if d, err := make(); !errors.Is(err, ErrDatatype) {
			t.Errorf("%s: %v, error %v, want %v", name, d, err, ErrDatatype)
		}
	}
}
