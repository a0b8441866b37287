package op

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// affine is an item {a int64; b int32} for the operator (a₁, b₁)∘(a₂, b₂) = (a₁a₂, a₁b₂+b₁), which is
// associative and not commutative. The two lie at any places of an item.
type affine struct {
	atA, atB     int
	calls, items int
}

func (f *affine) combine(tb interface{ Errorf(string, ...any) }) ItemsFunc {
	return func(in, inout datatype.Memory, count int, t *datatype.Type) {
		f.calls, f.items = f.calls+1, f.items+count
		for _, m := range []datatype.Memory{in, inout} {
			if t.Align() != 8 || m.Addr()%8 != 0 {
				tb.Errorf("items of alignment %d at %#x", t.Align(), m.Addr())
			}
		}
		for i := range count {
			x, y := in.At(i*t.Extent()), inout.At(i*t.Extent())
			a1, b1 := x.Bytes(f.atA, 8), x.Bytes(f.atB, 4)
			a2, b2 := y.Bytes(f.atA, 8), y.Bytes(f.atB, 4)
			p, q := binary.NativeEndian.Uint64(a1), binary.NativeEndian.Uint32(b1)
			binary.NativeEndian.PutUint32(b2, uint32(p)*binary.NativeEndian.Uint32(b2)+q)
			binary.NativeEndian.PutUint64(a2, p*binary.NativeEndian.Uint64(a2))
		}
	}
}

// TestUserItems gives an operator of the program items with gaps, in any order, with a negative
// lower bound, in place and not, aligned and not, few and more than fit one block.
func TestUserItems(t *testing.T) {
	wide, err := datatype.Of[int64]()
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := datatype.Of[int32]()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := &affine{atA: 8 * rapid.IntRange(-3, 3).Draw(t, "a")}
		f.atB = f.atA + 4*rapid.SampledFrom([]int{2, 3, 4, -1, -4}).Draw(t, "b")
		made, err := datatype.Struct([]int{1, 1}, []int{f.atA, f.atB}, []*datatype.Type{wide, narrow})
		if err != nil {
			t.Fatal(err)
		}
		if e := rapid.SampledFrom([]int{0, 64, 4000, -64}).Draw(t, "extent"); e != 0 {
			if made, err = datatype.Resized(made, f.atA, e); err != nil {
				t.Fatal(err)
			}
		} else {
			lb, _ := made.Bounds()
			if made, err = datatype.Resized(made, lb, 32); err != nil {
				t.Fatal(err)
			}
		}
		o, err := NewUserItems(f.combine(t), made, false)
		if err != nil {
			t.Fatal(err)
		}
		count := rapid.SampledFrom([]int{0, 1, 3, 50, 5000}).Draw(t, "count")
		shift := rapid.IntRange(0, 8).Draw(t, "shift")
		packed := func(seed int) []byte {
			b := make([]byte, shift+12*count)[shift:]
			for i := range count {
				binary.NativeEndian.PutUint64(b[12*i:], uint64(seed+i))
				binary.NativeEndian.PutUint32(b[12*i+8:], uint32(seed*i))
			}
			return b
		}
		a, b := packed(3), packed(5)
		want := make([]byte, 12*count)
		for i := range count {
			binary.NativeEndian.PutUint64(want[12*i:], uint64((3+i)*(5+i)))
			binary.NativeEndian.PutUint32(want[12*i+8:], uint32((3+i)*5*i+3*i))
		}
		var dst []byte
		switch rapid.IntRange(0, 2).Draw(t, "dst") {
		case 0:
			dst = make([]byte, 12*count)
			o.Combine(dst, a, b)
			if !slices.Equal(a, packed(3)) || !slices.Equal(b, packed(5)) {
				t.Fatal("operands have changed")
			}
		case 1:
			dst = a
			o.Combine(dst, a, b)
		case 2:
			dst = b
			o.Combine(dst, a, b)
		}
		if !slices.Equal(dst, want) || f.items != count {
			t.Fatalf("%d items in %d calls: %x, want %x", f.items, f.calls, dst, want)
		}
	})
}

// TestUserItemsDense checks that items without gaps are combined in place.
func TestUserItemsDense(t *testing.T) {
	num, err := datatype.Of[int64]()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := datatype.Contiguous(2, num)
	if err != nil {
		t.Fatal(err)
	}
	var calls int
	o, err := NewUserItems(func(in, inout datatype.Memory, count int, t *datatype.Type) {
		calls++
		x, y := datatype.View[int64](in.Bytes(0, count*16)), datatype.View[int64](inout.Bytes(0, count*16))
		for i := range y {
			y[i] = x[i] - y[i]
		}
	}, pair, true)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Commutative() || o.Code() != CodeUser || o.Name() != "user" {
		t.Errorf("%v, %v, %v", o.Commutative(), o.Code(), o.Name())
	}
	a, b, dst := make([]int64, 20000), make([]int64, 20000), make([]int64, 20000)
	for i := range a {
		a[i], b[i] = int64(i), 7
	}
	if n := testing.AllocsPerRun(5, func() { o.Combine(datatype.Bytes(dst), datatype.Bytes(a), datatype.Bytes(b)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if dst[9] != 2 || dst[19999] != 19992 || calls != 6 {
		t.Errorf("%d, %d in %d calls", dst[9], dst[19999], calls)
	}
	o.Combine(datatype.Bytes(a), datatype.Bytes(a), datatype.Bytes(b))
	if !slices.Equal(a, dst) {
		t.Error("in place is different")
	}
}

// TestUserItemsRefused reaches the limits of what an operator of the program takes.
func TestUserItemsRefused(t *testing.T) {
	b, err := datatype.Of[byte]()
	if err != nil {
		t.Fatal(err)
	}
	f := func(datatype.Memory, datatype.Memory, int, *datatype.Type) {}
	spans := func(n int) *datatype.Type {
		d, err := datatype.Indexed([]int{1, 1}, []int{0, n - 1}, b)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	none, err := datatype.Contiguous(0, b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewUserItems(f, spans(MaxUserSpan), true); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		f    ItemsFunc
		t    *datatype.Type
		want error
	}{
		{f, spans(MaxUserSpan + 1), mpierr.ErrDatatype}, {f, none, mpierr.ErrDatatype}, {f, nil, mpierr.ErrDatatype}, {nil, b, mpierr.ErrOp},
	} {
		if _, err := NewUserItems(tt.f, tt.t, true); !errors.Is(err, tt.want) {
			t.Errorf("%v: %v, want %v", tt.t, err, tt.want)
		}
	}
}
