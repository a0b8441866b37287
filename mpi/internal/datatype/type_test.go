package datatype

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// odd is a struct whose size is no power of two.
type odd struct{ A, B, C byte }

// padded has gaps between its fields and at its end.
type padded struct {
	A int8
	B [1]int16
	C [2]struct{ V int8 }
	_ [0]int32
	D int8
}

func must(t *Type, err error) *Type {
	if err != nil {
		panic(err)
	}
	return t
}

// A typeMap is a datatype as the standard defines it: the place of every byte,
// in order.
type typeMap struct {
	at     []int
	sizes  []int // of the basic elements
	lb, ub int
	marked bool // it has an lb_marker and an ub_marker
}

func (m typeMap) shift(off int) typeMap {
	out := typeMap{lb: m.lb + off, ub: m.ub + off, marked: m.marked, sizes: m.sizes}
	for _, a := range m.at {
		out.at = append(out.at, a+off)
	}
	return out
}

// join is the type map of several blocks.
func join(parts ...typeMap) typeMap {
	var out typeMap
	for _, p := range parts {
		out.marked = out.marked || p.marked
	}
	first := true
	for _, p := range parts {
		out.at = append(out.at, p.at...)
		out.sizes = append(out.sizes, p.sizes...)
		if p.marked != out.marked || !p.marked && len(p.at) == 0 {
			continue // markers outweigh data (MPI-4.1, Section 5.1.6)
		}
		if first {
			out.lb, out.ub, first = p.lb, p.ub, false
		}
		out.lb, out.ub = min(out.lb, p.lb), max(out.ub, p.ub)
	}
	return out
}

// items is n items in a row from off.
func (m typeMap) items(n, off int) typeMap {
	var parts []typeMap
	for i := range n {
		parts = append(parts, m.shift(off+i*(m.ub-m.lb)))
	}
	return join(parts...)
}

// drawType draws a datatype and its type map.
func drawType(t *rapid.T, depth int) (*Type, typeMap) {
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 7).Draw(t, "kind")
	}
	if kind == 0 {
		var d *Type
		var err error
		m := typeMap{}
		switch rapid.IntRange(0, 4).Draw(t, "base") {
		case 0:
			d, err = Of[byte]()
			m.sizes = []int{1}
		case 1:
			d, err = Of[float64]()
			m.sizes = []int{8}
		case 2:
			d, err = Of[odd]()
			m.sizes = []int{1, 1, 1}
		case 3:
			d, err = Of[int32]()
			m.sizes = []int{4}
		case 4:
			d, err = Of[padded]()
			m.sizes, m.at, m.ub = []int{1, 2, 1, 1, 1}, []int{0, 2, 3, 4, 5, 8}, 12
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.at == nil {
			m.ub = d.Size()
			for i := range d.Size() {
				m.at = append(m.at, i)
			}
		}
		return d, m
	}
	in, m := drawType(t, depth-1)
	ext := m.ub - m.lb
	small := rapid.IntRange(0, 3)
	var (
		out *Type
		err error
		ref typeMap
	)
	switch kind {
	case 1:
		n := small.Draw(t, "n")
		out, err = Contiguous(n, in)
		ref = m.items(n, 0)
	case 2:
		n, b, s := small.Draw(t, "n"), small.Draw(t, "block"), rapid.IntRange(-3, 5).Draw(t, "stride")
		out, err = Vector(n, b, s, in)
		ref = strided(m, n, b, s*ext)
	case 3:
		n, b, s := small.Draw(t, "n"), small.Draw(t, "block"), rapid.IntRange(-30, 50).Draw(t, "stride")
		out, err = Hvector(n, b, s, in)
		ref = strided(m, n, b, s)
	case 4, 5:
		lens := rapid.SliceOfN(small, 0, 3).Draw(t, "lens")
		displs := rapid.SliceOfN(rapid.IntRange(-9, 9), len(lens), len(lens)).Draw(t, "displs")
		unit := 1
		if kind == 4 {
			unit = ext
			out, err = Indexed(lens, displs, in)
		} else {
			out, err = Hindexed(lens, displs, in)
		}
		var parts []typeMap
		for i, n := range lens {
			if n > 0 {
				parts = append(parts, m.items(n, displs[i]*unit))
			}
		}
		ref = join(parts...)
	case 6:
		in2, m2 := drawType(t, depth-1)
		d1, d2 := rapid.IntRange(-20, 20).Draw(t, "d1"), rapid.IntRange(-20, 20).Draw(t, "d2")
		out, err = Struct([]int{1, 2}, []int{d1, d2}, []*Type{in, in2})
		ref = join(m.shift(d1), m2.items(2, d2))
		if err == nil {
			pad := 8
			if ref.marked {
				pad = 1
			}
			if e := out.Extent(); e < ref.ub-ref.lb || e >= ref.ub-ref.lb+pad {
				t.Fatalf("extent of struct = %d, want %d and less than %d of padding", e, ref.ub-ref.lb, pad)
			}
			ref.ub = ref.lb + out.Extent()
		}
	case 7:
		lb, e := rapid.IntRange(-5, 5).Draw(t, "lb"), rapid.IntRange(-20, 60).Draw(t, "extent")
		out, err = Resized(in, lb, e)
		ref = typeMap{m.at, m.sizes, lb, lb + e, true}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, ref
}

func strided(m typeMap, n, b, stride int) typeMap {
	var parts []typeMap
	for i := range n {
		if b > 0 {
			parts = append(parts, m.items(b, i*stride))
		}
	}
	return join(parts...)
}

// TestPack compares packing and unpacking random datatypes with their
// type maps.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, m := drawType(t, 3)
		if lb, ub := d.Bounds(); lb != m.lb || ub != m.ub || d.Size() != len(m.at) {
			t.Fatalf("bounds [%d, %d) size %d, want [%d, %d) size %d", lb, ub, d.Size(), m.lb, m.ub, len(m.at))
		}
		count := rapid.IntRange(0, 3).Draw(t, "count")
		all := m.items(count, 0)
		// Move it so that no byte is before the beginning.
		shift := 0
		for _, a := range all.at {
			shift = max(shift, -a)
		}
		moved, err := HindexedBlock(1, []int{shift}, d)
		if err != nil {
			t.Fatal(err)
		}
		if moved, err = Resized(moved, 0, m.ub-m.lb); err != nil {
			t.Fatal(err)
		}
		end := 0
		for i := range all.at {
			all.at[i] += shift
			end = max(end, all.at[i]+1)
		}
		src := make([]byte, end)
		for i := range src {
			src[i] = byte(i*7 + 1)
		}
		var want []byte
		for _, a := range all.at {
			want = append(want, src[a])
		}
		got, err := moved.AppendPacked([]byte{42}, src, count)
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != 42 || !bytes.Equal(got[1:], want) {
			t.Fatalf("packed %v, want %v", got[1:], want)
		}
		dst, ref := make([]byte, end), make([]byte, end)
		for i, a := range all.at {
			ref[a] = want[i]
		}
		rest, err := moved.UnpackFrom(append(want, 9), dst, count)
		if err != nil || len(rest) != 1 || rest[0] != 9 {
			t.Fatalf("unpack left %v, error %v", rest, err)
		}
		if !bytes.Equal(dst, ref) {
			t.Fatalf("unpacked %v, want %v", dst, ref)
		}
		if len(all.at) == 0 {
			return
		}
		if _, err := moved.AppendPacked(nil, src[:end-1], count); !errors.Is(err, mpierr.ErrCount) {
			t.Fatalf("packing from a buffer one byte short: %v, want %v", err, mpierr.ErrCount)
		}
		if _, err := moved.UnpackFrom(want[:len(want)-1], dst, count); !errors.Is(err, mpierr.ErrCount) {
			t.Fatalf("unpacking one byte too few: %v, want %v", err, mpierr.ErrCount)
		}
	})
}

func TestSubarray(t *testing.T) {
	f, _ := Of[int16]()
	sizes, subsizes, starts := []int{3, 4, 5}, []int{2, 2, 3}, []int{1, 0, 2}
	grid := make([]int16, 3*4*5)
	for i := range grid {
		grid[i] = int16(i)
	}
	for _, order := range []int{RowMajor, ColumnMajor} {
		d, err := Subarray(sizes, subsizes, starts, order, f)
		if err != nil {
			t.Fatal(err)
		}
		var want []int16
		index := func(i, j, k int) int {
			if order == RowMajor {
				return (i*4+j)*5 + k
			}
			return (k*4+j)*3 + i
		}
		for i := range 2 {
			for j := range 2 {
				for k := range 3 {
					x, y, z := i, j, k
					if order == ColumnMajor { // the first index varies fastest
						n := (i*2+j)*3 + k
						x, y, z = n%2, n/2%2, n/4
					}
					want = append(want, int16(index(1+x, y, 2+z)))
				}
			}
		}
		b, err := d.AppendPacked(nil, Bytes(grid), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := View[int16](b); !slices.Equal(got, want) {
			t.Errorf("order %d: packed %v, want %v", order, got, want)
		}
		if e := d.Extent(); e != len(grid)*2 {
			t.Errorf("extent = %d, want that of the array, %d", e, len(grid)*2)
		}
	}
}

func TestConstructorErrors(t *testing.T) {
	f, err := Of[float64]()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Of[*int](); !errors.Is(err, mpierr.ErrType) {
		t.Errorf("TypeOf pointer: %v, want %v", err, mpierr.ErrType)
	}
	for name, make := range map[string]func() (*Type, error){
		"negative count":    func() (*Type, error) { return Contiguous(-1, f) },
		"nil":               func() (*Type, error) { return Vector(2, 2, 2, nil) },
		"nil in struct":     func() (*Type, error) { return Struct([]int{1}, []int{0}, []*Type{nil}) },
		"nil resized":       func() (*Type, error) { return Resized(nil, 0, 0) },
		"huge count":        func() (*Type, error) { return Contiguous(math.MaxInt, f) },
		"huge stride":       func() (*Type, error) { return Vector(2, 1, math.MaxInt/2, f) },
		"smallest stride":   func() (*Type, error) { return Hvector(3, 1, math.MinInt, f) },
		"negative block":    func() (*Type, error) { return Indexed([]int{-1}, []int{0}, f) },
		"lists":             func() (*Type, error) { return Indexed([]int{1, 2}, []int{0}, f) },
		"types":             func() (*Type, error) { return Struct([]int{1}, []int{0}, nil) },
		"huge displacement": func() (*Type, error) { return IndexedBlock(1, []int{math.MaxInt}, f) },
		"extent":            func() (*Type, error) { return Resized(f, math.MaxInt, 1) },
		"no dimensions":     func() (*Type, error) { return Subarray(nil, nil, nil, RowMajor, f) },
		"subarray outside": func() (*Type, error) {
			return Subarray([]int{4}, []int{2}, []int{3}, RowMajor, f)
		},
		"huge array": func() (*Type, error) {
			return Subarray([]int{1 << 30, 1 << 30, 1 << 30}, []int{1, 1, 1}, []int{0, 0, 0}, RowMajor, f)
		},
	} {
		if d, err := make(); !errors.Is(err, mpierr.ErrDatatype) {
			t.Errorf("%s: %v, error %v, want %v", name, d, err, mpierr.ErrDatatype)
		}
	}
	d := f
	for i := range MaxDepth + 1 {
		next, err := Vector(2, 1, 3, d)
		if err != nil {
			if i != MaxDepth && !errors.Is(err, mpierr.ErrDatatype) {
				t.Errorf("nesting %d deep: %v", i, err)
			}
			return
		}
		d = next
	}
	t.Errorf("datatypes nest deeper than %d", MaxDepth)
}

// TestMarkers checks bounds of what is made of resized datatypes and of others
// (MPI-4.1, Section 5.1.6).
func TestMarkers(t *testing.T) {
	num := must(Of[int32]())
	wide := must(Of[float64]())
	small := must(Resized(num, -3, 9))
	empty := must(Contiguous(0, num))
	for _, tt := range []struct {
		name   string
		t      *Type
		lb, ub int
	}{
		{"two resized", must(Contiguous(2, small)), -3, 15},
		{"data beyond the markers", must(Struct([]int{1, 1}, []int{0, 20}, []*Type{small, num})), -3, 6},
		{"data before the markers", must(Struct([]int{1, 1}, []int{-40, 0}, []*Type{num, small})), -3, 6},
		{"nested", must(Contiguous(2, must(Struct([]int{1, 1}, []int{0, 20}, []*Type{small, num})))), -3, 15},
		{"duplicate", must(Struct([]int{1, 1}, []int{0, 20}, []*Type{must(small.Dup()), num})), -3, 6},
		{"no padding", must(Struct([]int{1, 1}, []int{8, 0}, []*Type{small, wide})), 5, 14},
		{"two kinds of markers", must(Struct([]int{1, 1, 1}, []int{0, 30, 90}, []*Type{small, must(Resized(wide, 0, 1)), num})), -3, 31},
		{"part without data", must(Struct([]int{1, 1}, []int{100, 0}, []*Type{empty, num})), 0, 4},
		{"row of an array", must(Struct([]int{1, 1}, []int{0, 500},
			[]*Type{must(Subarray([]int{4, 4}, []int{1, 4}, []int{2, 0}, RowMajor, num)), num})), 0, 64},
	} {
		if lb, ub := tt.t.Bounds(); lb != tt.lb || ub != tt.ub {
			t.Errorf("%s: bounds [%d, %d), want [%d, %d)", tt.name, lb, ub, tt.lb, tt.ub)
		}
	}
}
