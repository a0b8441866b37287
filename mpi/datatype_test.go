package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// A typeMap is a datatype as the standard defines it: the place of every byte,
// in order.
type typeMap struct {
	at     []int
	lb, ub int
	marked bool // it has an lb_marker and an ub_marker
}

func (m typeMap) shift(off int) typeMap {
	out := typeMap{lb: m.lb + off, ub: m.ub + off, marked: m.marked}
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
func drawType(t *rapid.T, depth int) (*Datatype, typeMap) {
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 7).Draw(t, "kind")
	}
	if kind == 0 {
		var d *Datatype
		var err error
		switch rapid.IntRange(0, 3).Draw(t, "base") {
		case 0:
			d, err = TypeOf[byte]()
		case 1:
			d, err = TypeOf[float64]()
		case 2:
			d, err = TypeOf[odd]()
		case 3:
			d, err = TypeOf[int32]()
		}
		if err != nil {
			t.Fatal(err)
		}
		m := typeMap{ub: d.Size()}
		for i := range d.Size() {
			m.at = append(m.at, i)
		}
		return d, m
	}
	in, m := drawType(t, depth-1)
	ext := m.ub - m.lb
	small := rapid.IntRange(0, 3)
	var (
		out *Datatype
		err error
		ref typeMap
	)
	switch kind {
	case 1:
		n := small.Draw(t, "n")
		out, err = TypeContiguous(n, in)
		ref = m.items(n, 0)
	case 2:
		n, b, s := small.Draw(t, "n"), small.Draw(t, "block"), rapid.IntRange(-3, 5).Draw(t, "stride")
		out, err = TypeVector(n, b, s, in)
		ref = strided(m, n, b, s*ext)
	case 3:
		n, b, s := small.Draw(t, "n"), small.Draw(t, "block"), rapid.IntRange(-30, 50).Draw(t, "stride")
		out, err = TypeHvector(n, b, s, in)
		ref = strided(m, n, b, s)
	case 4, 5:
		lens := rapid.SliceOfN(small, 0, 3).Draw(t, "lens")
		displs := rapid.SliceOfN(rapid.IntRange(-9, 9), len(lens), len(lens)).Draw(t, "displs")
		unit := 1
		if kind == 4 {
			unit = ext
			out, err = TypeIndexed(lens, displs, in)
		} else {
			out, err = TypeHindexed(lens, displs, in)
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
		out, err = TypeStruct([]int{1, 2}, []int{d1, d2}, []*Datatype{in, in2})
		ref = join(m.shift(d1), m2.items(2, d2))
		if err == nil {
			pad := 8
			if ref.marked {
				pad = 1
			}
			if _, e := out.Extent(); e < ref.ub-ref.lb || e >= ref.ub-ref.lb+pad {
				t.Fatalf("extent of struct = %d, want %d and less than %d of padding", e, ref.ub-ref.lb, pad)
			}
			_, e := out.Extent()
			ref.ub = ref.lb + e
		}
	case 7:
		lb, e := rapid.IntRange(-5, 5).Draw(t, "lb"), rapid.IntRange(-20, 60).Draw(t, "extent")
		out, err = TypeResized(in, lb, e)
		ref = typeMap{m.at, lb, lb + e, true}
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

// TestDatatypePack compares packing and unpacking random datatypes with their
// type maps.
func TestDatatypePack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, m := drawType(t, 3)
		if lb, e := d.Extent(); lb != m.lb || e != m.ub-m.lb || d.Size() != len(m.at) {
			t.Fatalf("bounds [%d, %d) size %d, want [%d, %d) size %d", lb, lb+e, d.Size(), m.lb, m.ub, len(m.at))
		}
		count := rapid.IntRange(0, 3).Draw(t, "count")
		all := m.items(count, 0)
		// Move it so that no byte is before the beginning.
		shift := 0
		for _, a := range all.at {
			shift = max(shift, -a)
		}
		moved, err := TypeHindexedBlock(1, []int{shift}, d)
		if err != nil {
			t.Fatal(err)
		}
		if moved, err = TypeResized(moved, 0, m.ub-m.lb); err != nil {
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
		got, err := AppendPacked([]byte{42}, src, count, moved)
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
		rest, err := Unpack(append(want, 9), dst, count, moved)
		if err != nil || len(rest) != 1 || rest[0] != 9 {
			t.Fatalf("unpack left %v, error %v", rest, err)
		}
		if !bytes.Equal(dst, ref) {
			t.Fatalf("unpacked %v, want %v", dst, ref)
		}
		if len(all.at) == 0 {
			return
		}
		if _, err := AppendPacked(nil, src[:end-1], count, moved); !errors.Is(err, ErrCount) {
			t.Fatalf("packing from a buffer one byte short: %v, want %v", err, ErrCount)
		}
		if _, err := Unpack(want[:len(want)-1], dst, count, moved); !errors.Is(err, ErrCount) {
			t.Fatalf("unpacking one byte too few: %v, want %v", err, ErrCount)
		}
	})
}

func TestDatatypeSubarray(t *testing.T) {
	f, _ := TypeOf[int16]()
	sizes, subsizes, starts := []int{3, 4, 5}, []int{2, 2, 3}, []int{1, 0, 2}
	grid := make([]int16, 3*4*5)
	for i := range grid {
		grid[i] = int16(i)
	}
	for _, order := range []Order{RowMajor, ColumnMajor} {
		d, err := TypeSubarray(sizes, subsizes, starts, order, f)
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
		b, err := AppendPacked(nil, grid, 1, d)
		if err != nil {
			t.Fatal(err)
		}
		if got := datatype.View[int16](b); !slices.Equal(got, want) {
			t.Errorf("order %d: packed %v, want %v", order, got, want)
		}
		if _, e := d.Extent(); e != len(grid)*2 {
			t.Errorf("extent = %d, want that of the array, %d", e, len(grid)*2)
		}
	}
}

func TestDatatypeErrors(t *testing.T) {
	f, err := TypeOf[float64]()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TypeOf[*int](); !errors.Is(err, ErrType) {
		t.Errorf("TypeOf pointer: %v, want %v", err, ErrType)
	}
	for name, make := range map[string]func() (*Datatype, error){
		"negative count":    func() (*Datatype, error) { return TypeContiguous(-1, f) },
		"nil":               func() (*Datatype, error) { return TypeVector(2, 2, 2, nil) },
		"nil in struct":     func() (*Datatype, error) { return TypeStruct([]int{1}, []int{0}, []*Datatype{nil}) },
		"nil resized":       func() (*Datatype, error) { return TypeResized(nil, 0, 0) },
		"huge count":        func() (*Datatype, error) { return TypeContiguous(math.MaxInt, f) },
		"huge stride":       func() (*Datatype, error) { return TypeVector(2, 1, math.MaxInt/2, f) },
		"smallest stride":   func() (*Datatype, error) { return TypeHvector(3, 1, math.MinInt, f) },
		"negative block":    func() (*Datatype, error) { return TypeIndexed([]int{-1}, []int{0}, f) },
		"lists":             func() (*Datatype, error) { return TypeIndexed([]int{1, 2}, []int{0}, f) },
		"types":             func() (*Datatype, error) { return TypeStruct([]int{1}, []int{0}, nil) },
		"huge displacement": func() (*Datatype, error) { return TypeIndexedBlock(1, []int{math.MaxInt}, f) },
		"extent":            func() (*Datatype, error) { return TypeResized(f, math.MaxInt, 1) },
		"no dimensions":     func() (*Datatype, error) { return TypeSubarray(nil, nil, nil, RowMajor, f) },
		"subarray outside": func() (*Datatype, error) {
			return TypeSubarray([]int{4}, []int{2}, []int{3}, RowMajor, f)
		},
		"huge array": func() (*Datatype, error) {
			return TypeSubarray([]int{1 << 30, 1 << 30, 1 << 30}, []int{1, 1, 1}, []int{0, 0, 0}, RowMajor, f)
		},
	} {
		if d, err := make(); !errors.Is(err, ErrDatatype) {
			t.Errorf("%s: %v, error %v, want %v", name, d, err, ErrDatatype)
		}
	}
	d := f
	for i := range MaxTypeDepth + 1 {
		next, err := TypeVector(2, 1, 3, d)
		if err != nil {
			if i != MaxTypeDepth && !errors.Is(err, ErrDatatype) {
				t.Errorf("nesting %d deep: %v", i, err)
			}
			return
		}
		d = next
	}
	t.Errorf("datatypes nest deeper than %d", MaxTypeDepth)
}

// TestDatatypeMessages sends the columns of a matrix and receives them as rows.
func TestDatatypeMessages(t *testing.T) {
	const n = 60
	f, _ := TypeOf[float64]()
	column, err := TypeVector(n, 1, n, f)
	if err != nil {
		t.Fatal(err)
	}
	if column, err = TypeResized(column, 0, 8); err != nil { // the next column is 8 bytes on
		t.Fatal(err)
	}
	all, err := TypeContiguous(n, column)
	if err != nil {
		t.Fatal(err)
	}
	local(t, 2, func(ctx context.Context, c *Comm) error {
		a := make([]float64, n*n)
		if c.Rank() == 0 {
			for i := range a {
				a[i] = float64(i)
			}
			if err := SendType(ctx, c, a, 1, all, 1, 5); err != nil {
				return err
			}
			r, err := IsendType(c, a, n*n, f, 1, 6)
			if err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			return err
		}
		if _, err := Recv(ctx, c, a, 0, 5); err != nil {
			return err
		}
		for i := range a {
			if want := float64(i%n*n + i/n); a[i] != want {
				return fmt.Errorf("element %d = %v, want %v", i, a[i], want)
			}
		}
		// Transposing what arrives gives the same.
		b := make([]float64, n*n)
		r, err := IrecvType(c, b, 1, all, 0, 6)
		if err != nil {
			return err
		}
		st, err := r.Wait(ctx)
		if err != nil || st.Bytes != n*n*8 {
			return fmt.Errorf("received %d bytes, error %w", st.Bytes, err)
		}
		return diff("transposed", b, a)
	})
}

func TestDatatypeShortMessage(t *testing.T) {
	f, _ := TypeOf[byte]()
	pairs, err := TypeVector(3, 2, 3, f)
	if err != nil {
		t.Fatal(err)
	}
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if c.Rank() == 0 {
			if err := Send(ctx, c, []byte("abc"), 1, 0); err != nil {
				return err
			}
			return Send(ctx, c, []byte("abcdefgh"), 1, 0)
		}
		buf := []byte("........")
		st, err := RecvType(ctx, c, buf, 1, pairs, 0, 0)
		if err != nil || st.Bytes != 3 || string(buf) != "ab.c...." {
			return fmt.Errorf("received %q, %+v, error %w", buf, st, err)
		}
		if st, err = RecvType(ctx, c, buf, 1, pairs, 0, 0); !errors.Is(err, ErrTruncate) || string(buf) != "ab.cd.ef" {
			return fmt.Errorf("long message: %q, %+v, error %w, want %w", buf, st, err, ErrTruncate)
		}
		return nil
	})
}

// TestAlltoallw transposes a matrix that is spread over the ranks by rows.
func TestAlltoallw(t *testing.T) {
	const p, rows = 4, 3
	const n = p * rows
	local(t, p, func(ctx context.Context, c *Comm) error {
		u, _ := TypeOf[int32]()
		// What goes to rank i are its columns, one after the other.
		column, err := TypeVector(rows, 1, n, u)
		if err != nil {
			return err
		}
		if column, err = TypeResized(column, 0, 4); err != nil {
			return err
		}
		// What comes from rank i is a part of each row.
		part, err := TypeVector(rows, rows, n, u)
		if err != nil {
			return err
		}
		a, b := make([]int32, rows*n), make([]int32, rows*n)
		for i := range a {
			a[i] = int32(c.Rank()*rows*n + i)
		}
		var scounts, displs, rcounts [p]int
		var stypes, rtypes [p]*Datatype
		for i := range p {
			scounts[i], rcounts[i], displs[i], stypes[i], rtypes[i] = rows, 1, i*rows*4, column, part
		}
		if err := Alltoallw(ctx, c, a, scounts[:], displs[:], stypes[:], b, rcounts[:], displs[:], rtypes[:]); err != nil {
			return err
		}
		for i := range b {
			row, col := c.Rank()*rows+i/n, i%n
			if want := int32(col*n + row); b[i] != want {
				return fmt.Errorf("element (%d, %d) = %d, want %d", row, col, b[i], want)
			}
		}
		clear(b)
		r, err := Ialltoallw(c, a, scounts[:], displs[:], stypes[:], b, rcounts[:], displs[:], rtypes[:])
		if err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		if want := int32(n + c.Rank()*rows); b[1] != want {
			return fmt.Errorf("element (%d, 1) = %d, want %d", c.Rank()*rows, b[1], want)
		}
		if err := Alltoallw(ctx, c, a, scounts[:1], displs[:], stypes[:], b, rcounts[:], displs[:], rtypes[:]); !errors.Is(err, ErrCount) {
			return fmt.Errorf("too few counts: %v, want %w", err, ErrCount)
		}
		return nil
	})
}

// TestTypeMarkers checks bounds of what is made of resized datatypes and of others
// (MPI-4.1, Section 5.1.6).
func TestTypeMarkers(t *testing.T) {
	num := MustType(TypeOf[int32]())
	wide := MustType(TypeOf[float64]())
	small := MustType(TypeResized(num, -3, 9))
	empty := MustType(TypeContiguous(0, num))
	for _, tt := range []struct {
		name   string
		t      *Datatype
		lb, ub int
	}{
		{"two resized", MustType(TypeContiguous(2, small)), -3, 15},
		{"data beyond the markers", MustType(TypeStruct([]int{1, 1}, []int{0, 20}, []*Datatype{small, num})), -3, 6},
		{"data before the markers", MustType(TypeStruct([]int{1, 1}, []int{-40, 0}, []*Datatype{num, small})), -3, 6},
		{"nested", MustType(TypeContiguous(2, MustType(TypeStruct([]int{1, 1}, []int{0, 20}, []*Datatype{small, num})))), -3, 15},
		{"duplicate", MustType(TypeStruct([]int{1, 1}, []int{0, 20}, []*Datatype{MustType(small.Dup()), num})), -3, 6},
		{"no padding", MustType(TypeStruct([]int{1, 1}, []int{8, 0}, []*Datatype{small, wide})), 5, 14},
		{"two kinds of markers", MustType(TypeStruct([]int{1, 1, 1}, []int{0, 30, 90}, []*Datatype{small, MustType(TypeResized(wide, 0, 1)), num})), -3, 31},
		{"part without data", MustType(TypeStruct([]int{1, 1}, []int{100, 0}, []*Datatype{empty, num})), 0, 4},
		{"row of an array", MustType(TypeStruct([]int{1, 1}, []int{0, 500},
			[]*Datatype{MustType(TypeSubarray([]int{4, 4}, []int{1, 4}, []int{2, 0}, RowMajor, num)), num})), 0, 64},
	} {
		if lb, extent := tt.t.Extent(); lb != tt.lb || lb+extent != tt.ub {
			t.Errorf("%s: bounds [%d, %d), want [%d, %d)", tt.name, lb, lb+extent, tt.lb, tt.ub)
		}
	}
}
