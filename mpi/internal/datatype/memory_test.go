package datatype

import (
	"bytes"
	"errors"
	"math"
	"math/bits"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// drawBuffer draws a buffer in memory of random bytes, of either form, and the places of their data
// in it.
func drawBuffer(t *rapid.T, mem []byte) (Buffer, []int) {
	d, m := drawType(t, 3)
	x := Buffer{Count: rapid.IntRange(0, 3).Draw(t, "count"), Type: d}
	at := m.items(x.Count, 0).at
	lo, hi := math.MaxInt, math.MinInt
	for _, a := range at {
		lo, hi = min(lo, a), max(hi, a+1)
	}
	if len(at) == 0 {
		lo, hi = 0, 0
	}
	if hi-lo > len(mem) {
		t.Skip("too long")
	}
	begin := rapid.IntRange(-lo, len(mem)-hi).Draw(t, "begin")
	switch rapid.SampledFrom([]string{"slice", "address", "bottom"}).Draw(t, "form") {
	case "slice":
		x.Mem = In(mem).At(begin)
	case "address":
		x.Mem = Address(In(mem).At(begin).Addr())
	case "bottom": // displacements are addresses
		var err error
		abs, err := HindexedBlock(1, []int{int(In(mem).At(begin).Addr())}, d)
		if err == nil {
			lb, ub := d.Bounds()
			x.Type, err = Resized(abs, int(x.Mem.Addr())+begin+lb, ub-lb)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range at {
		at[i] += begin
	}
	return x, at
}

func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + 1)
	}
	return b
}

// TestParts compares parts of the packed stream, packed and unpacked in any order, and the runs
// that hold them, with the type map.
func TestParts(t *testing.T) {
	mem := numbered(4096)
	rapid.Check(t, func(t *rapid.T) {
		x, at := drawBuffer(t, mem)
		if size, err := x.Span(); err != nil || size != len(at) {
			t.Fatalf("span = %d, %v, want %d", size, err, len(at))
		}
		want := make([]byte, len(at))
		for i, a := range at {
			want[i] = mem[a]
		}
		from := rapid.IntRange(0, len(at)).Draw(t, "from")
		to := rapid.IntRange(from, len(at)).Draw(t, "to")
		got := make([]byte, to-from)
		if n := x.Pack(got, from); n != len(got) || !bytes.Equal(got, want[from:to]) {
			t.Fatalf("bytes [%d, %d) are %v (%d), want %v", from, to, got, n, want[from:to])
		}

		// All runs, by a cursor that stops now and then.
		c := Cursor{Buffer: x}
		got = got[:0]
		ends := make(map[int]bool)
		for c.Left() > 0 {
			runs := make([]Run, rapid.IntRange(1, 4).Draw(t, "runs"))
			most := rapid.IntRange(1, 40).Draw(t, "most")
			k, n := c.Next(runs, most), 0
			for i, r := range runs[:k] {
				if i > 0 && runs[i-1].Off+runs[i-1].Len == r.Off {
					t.Fatalf("runs %v and %v touch", runs[i-1], r)
				}
				got = append(got, x.Mem.Bytes(r.Off, r.Len)...)
				n += r.Len
			}
			if k == 0 || n > most || c.Pos != len(got) || ends[c.Pos] {
				t.Fatalf("%d runs of %d bytes of at most %d, position %d, %d so far", k, n, most, c.Pos, len(got))
			}
			ends[c.Pos] = true
		}
		if !bytes.Equal(got, want) || c.Next(make([]Run, 1), 1) != 0 {
			t.Fatalf("runs hold %v, want %v", got, want)
		}
		if one, ok := x.Contiguous(); ok && !bytes.Equal(one, want) {
			t.Fatalf("contiguous %v, want %v", one, want)
		}

		ref := bytes.Clone(mem)
		old := bytes.Clone(mem)
		in := make([]byte, len(at))
		for i, a := range at {
			in[i] = byte(i*13 + 5)
			ref[a] = in[i]
		}
		c.Pos = 0
		for c.Left() > 0 {
			n := rapid.IntRange(1, 40).Draw(t, "part")
			if m := c.Unpack(in[c.Pos:min(c.Pos+n, len(in))]); m == 0 {
				t.Fatal("nothing unpacked")
			}
		}
		equal := bytes.Equal(mem, ref)
		copy(mem, old)
		if !equal {
			t.Fatal("unpacked to other places")
		}
	})
	runtime.KeepAlive(mem)
}

// TestSpanOfBuffer checks that only data outside of a slice is refused, not bounds outside, and
// that nothing is at an address.
func TestSpanOfBuffer(t *testing.T) {
	num := must(Of[int32]())
	before := must(HindexedBlock(1, []int{-8}, num))
	for _, tt := range []struct {
		name string
		x    Buffer
		size int
		err  error
	}{
		{"before the slice", Buffer{In(make([]byte, 16)), 1, before}, 0, mpierr.ErrCount},
		{"before the beginning, in the slice", Buffer{In(make([]byte, 16)).At(8), 1, before}, 4, nil},
		{"behind the slice", Buffer{In(make([]byte, 16)).At(13), 1, num}, 0, mpierr.ErrCount},
		{"extent behind the slice", Buffer{In(make([]byte, 16)), 1, must(Resized(num, 0, 400))}, 4, nil},
		{"second item behind the slice", Buffer{In(make([]byte, 16)), 2, must(Resized(num, 0, 400))}, 0, mpierr.ErrCount},
		{"bounds before the slice", Buffer{In(make([]byte, 16)), 1, must(Resized(num, -100, 400))}, 4, nil},
		{"items go backward", Buffer{In(make([]byte, 16)).At(12), 4, must(Resized(num, 0, -4))}, 16, nil},
		{"no items", Buffer{In(nil), 0, before}, 0, nil},
		{"no memory", Buffer{In(nil), 1, num}, 0, mpierr.ErrCount},
		{"bottom", Buffer{Memory{}, 3, must(HindexedBlock(1, []int{1 << 28}, num))}, 12, nil},
		{"address", Buffer{Address(4096), 3, before}, 12, nil},
		{"negative count", Buffer{Address(4096), -1, num}, 0, mpierr.ErrDatatype},
		{"no datatype", Buffer{Address(4096), 1, nil}, 0, mpierr.ErrDatatype},
		{"too long", Buffer{Address(4096), math.MaxInt, num}, 0, mpierr.ErrDatatype},
	} {
		if size, err := tt.x.Span(); size != tt.size || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d, %v, want %d, %v", tt.name, size, err, tt.size, tt.err)
		}
	}
}

// TestElements compares numbers of items and of elements with the type map.
func TestElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, m := drawType(t, 3)
		n := rapid.IntRange(0, 3*len(m.at)+1).Draw(t, "bytes")
		items, whole := 0, n == 0
		if len(m.at) > 0 {
			items, whole = n/len(m.at), n%len(m.at) == 0
		}
		if k, ok := d.Items(n); ok != whole || ok && k != items {
			t.Fatalf("%d bytes hold %d items (%v) of %d bytes", n, k, ok, len(m.at))
		}
		want, left := 0, n
		for i := 0; len(m.at) > 0; i++ {
			if size := m.sizes[i%len(m.sizes)]; left >= size {
				want, left = want+1, left-size
				continue
			}
			break
		}
		if k, ok := d.Elements(n); ok != (left == 0) || ok && k != want {
			t.Fatalf("%d bytes of %v hold %d elements (%v), want %d and %d bytes", n, d.Signature(), k, ok, want, left)
		}
		if size, ok := d.ElementsSize(want); len(m.at) > 0 && (!ok || size != n-left) {
			t.Fatalf("%d elements of %v have %d bytes (%v), want %d", want, d.Signature(), size, ok, n-left)
		}
		if _, ok := d.ElementsSize(-1); ok {
			t.Fatal("-1 elements have a size")
		}
	})
}

// TestDeepSignature asks for sums of a signature whose tree has two ways at each level.
func TestDeepSignature(t *testing.T) {
	num := must(Of[int8]())
	d := must(Contiguous(2, num))
	levels := bits.UintSize - 6
	for range levels {
		d = must(Struct([]int{1, 1}, []int{0, 0}, []*Type{d, must(Resized(d, 0, 1))}))
		d = must(Resized(d, 0, 1))
	}
	want := 2 << levels
	if n := d.ExternalSize(); n != want || d.Size() != want {
		t.Errorf("%d bytes in external32, %d in memory, want %d", n, d.Size(), want)
	}
	if k, ok := d.Elements(want + 1); !ok || k != want+1 {
		t.Errorf("%d elements (%v)", k, ok)
	}
}

// TestOverlap compares Overlap with the bytes of items in one array.
func TestOverlap(t *testing.T) {
	mem := make([]byte, 600)
	var yes, no int
	rapid.Check(t, func(t *rapid.T) {
		var sets [2][]Buffer
		var bytes [2]map[int]bool
		for i := range sets {
			bytes[i] = make(map[int]bool)
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				x, at := drawBuffer(t, mem)
				sets[i] = append(sets[i], x)
				for _, a := range at {
					bytes[i][a] = true
				}
			}
		}
		want := false
		for a := range bytes[0] {
			want = want || bytes[1][a]
		}
		if got := Overlap(sets[0], sets[1]); got != want {
			t.Fatalf("overlap: %v, want %v", got, want)
		}
		if want {
			yes++
		} else {
			no++
		}
	})
	runtime.KeepAlive(mem)
	if yes == 0 || no == 0 {
		t.Errorf("%d sets overlap, %d do not", yes, no)
	}
	// Interleaved blocks of an alltoallv in one array.
	num := must(Of[float64]())
	var send, recv []Buffer
	for i := range 8 {
		send = append(send, Buffer{In(mem).At(64 * i), 4, num})
		recv = append(recv, Buffer{In(mem).At(64*i + 32), 4, num})
	}
	if Overlap(send, recv) {
		t.Error("interleaved blocks overlap")
	}
	recv[5].Mem = recv[5].Mem.At(25)
	if !Overlap(send, recv) || !Overlap(recv, send) {
		t.Error("blocks that share a byte do not overlap")
	}
}

// TestCursorAllocates checks that going through runs, packing and unpacking allocates nothing.
func TestCursorAllocates(t *testing.T) {
	num := must(Of[float64]())
	d := must(Struct([]int{1, 1}, []int{0, 400}, []*Type{must(Vector(10, 1, 3, num)), num}))
	mem, packed, runs := make([]byte, 4096), make([]byte, 64), make([]Run, 4)
	if n := testing.AllocsPerRun(100, func() {
		c := Cursor{Buffer: Buffer{In(mem), 5, d}}
		for c.Next(runs, 100) > 0 {
		}
		for c.Pos = 0; c.Pack(packed) > 0; {
		}
		for c.Pos = 0; c.Unpack(packed) > 0; {
		}
		for off, n := range d.Runs(5) {
			packed[0] += byte(off + n)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
