package datatype

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

// TestPackOfC packs two kinds of items one behind the other, in both representations, and unpacks them
// in another layout.
func TestPackOfC(t *testing.T) {
	ctest.Returning(t)
	gaps := newtype(t, func(p uintptr) int { return TypeVector(3, 1, -2, abi.Int, p, false) })
	from := ctest.Heap[int32](1, 2, 3, 4, 5)
	long := ctest.Heap[int64](-6)
	b := ctest.NewBox()
	rep := ctest.CString("external32")

	ctest.Must(t, PackSize(2, gaps, abi.CommWorld, ctest.Addr(&b.N), false))
	ctest.Must(t, PackExternalSize(rep, 2, abi.Long, ctest.Addr(&b.Long)))
	if b.N != 24 || b.Long != 8 {
		t.Errorf("sizes %d and %d, want 24 and 8", b.N, b.Long)
	}
	packed := ctest.Heap(make([]byte, 32)...)
	b.N = 4
	ctest.Must(t, Pack(from+16, 1, gaps, packed, 32, ctest.Addr(&b.N), abi.CommWorld, false))
	ctest.Must(t, Pack(long, 1, abi.Long, packed, 32, ctest.Addr(&b.N), abi.CommWorld, false))
	if b.N != 24 {
		t.Errorf("position %d, want 24", b.N)
	}
	b.Long = 4
	ctest.Must(t, Unpack(packed, 32, ctest.Addr(&b.Long), ctest.Addr(&b.Ints[0]), 3, abi.Int, abi.CommWorld, true))
	ctest.Must(t, Unpack(packed, 32, ctest.Addr(&b.Long), ctest.Addr(&b.Ints[3]), 1, abi.Long, abi.CommWorld, true))
	if got := fmt.Sprint(b.Ints[:5], b.Long); got != "[5 3 1 -6 -1] 24" {
		t.Errorf("unpacked %s", got)
	}

	b.Long = 0
	ctest.Must(t, PackExternal(rep, from+16, 1, gaps, packed, 32, ctest.Addr(&b.Long)))
	ctest.Must(t, PackExternal(rep, long, 1, abi.Long, packed, 32, ctest.Addr(&b.Long)))
	want := []byte{0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfa}
	if got := cbinding.Array[byte](packed, 16); string(got) != string(want) || b.Long != 16 {
		t.Errorf("external32: % x, position %d, want % x", got, b.Long, want)
	}
	b.Long = 0
	back := ctest.Heap[int32](0, 0, 0, 0, 0)
	ctest.Must(t, UnpackExternal(rep, packed, 16, ctest.Addr(&b.Long), back+16, 1, gaps))
	ctest.Must(t, UnpackExternal(rep, packed, 16, ctest.Addr(&b.Long), ctest.Addr(&b.Value), 1, abi.Long))
	if got := fmt.Sprint(cbinding.Array[int32](back, 5), int64(b.Value)); got != "[1 0 3 0 5] -6" {
		t.Errorf("from external32: %s", got)
	}

	for _, tt := range []struct {
		name  string
		call  func() int
		class int
		text  string
	}{
		{"room", func() int {
			return Pack(from, 5, abi.Int, packed, 19, ctest.Addr(&b.N), abi.CommWorld, false)
		}, abi.ErrTruncate, "outsize 19"},
		{"data", func() int {
			return Unpack(packed, 19, ctest.Addr(&b.N), from, 5, abi.Int, abi.CommWorld, false)
		}, abi.ErrTruncate, "insize 19"},
		{"position", func() int {
			return Pack(from, 1, abi.Int, packed, -5, ctest.Addr(&b.N), abi.CommWorld, false)
		}, abi.ErrArg, "size -5"},
		{"null position", func() int {
			return Pack(from, 1, abi.Int, packed, 32, 0, abi.CommWorld, false)
		}, abi.ErrArg, "position NULL"},
		{"null output", func() int {
			return Pack(from, 1, abi.Int, 0, 32, ctest.Addr(&b.N), abi.CommWorld, false)
		}, abi.ErrBuffer, ""},
		{"null input", func() int {
			return Pack(0, 1, abi.Int, packed, 32, ctest.Addr(&b.N), abi.CommWorld, false)
		}, abi.ErrBuffer, ""},
		{"count", func() int {
			return Pack(from, -1, abi.Int, packed, 32, ctest.Addr(&b.N), abi.CommWorld, false)
		}, abi.ErrCount, "-1"},
		{"communicator", func() int {
			return PackSize(1, abi.Int, abi.CommNull, ctest.Addr(&b.N), false)
		}, abi.ErrComm, ""},
		{"representation", func() int {
			return PackExternalSize(ctest.CString("native"), 1, abi.Int, ctest.Addr(&b.Long))
		}, abi.ErrArg, "native"},
		{"conversion", func() int {
			return PackExternal(rep, ctest.Heap[int64](1<<40), 1, abi.Long, packed, 32, ctest.Addr(&b.Long))
		}, abi.ErrConversion, ""},
	} {
		b.N, b.Long = 0, 0
		ctest.WantError(t, tt.call(), tt.class, tt.text)
		if b.N != 0 || b.Long != 0 {
			t.Errorf("%s: the position has moved to %d and %d", tt.name, b.N, b.Long)
		}
	}
	ctest.Must(t, GetAddress(from, ctest.Addr(&b.Value)))
	if b.Value != from {
		t.Errorf("address %#x, want %#x", b.Value, from)
	}
	if n := testing.AllocsPerRun(100, func() {
		b.N = 0
		Pack(from+16, 1, gaps, packed, 32, ctest.Addr(&b.N), abi.CommWorld, false)
		b.N = 0
		Unpack(packed, 32, ctest.Addr(&b.N), back+16, 1, gaps, abi.CommWorld, false)
	}); n != 0 {
		t.Errorf("packing and unpacking allocates %v times", n)
	}
	ctest.Must(t, b.Free(TypeFree, gaps))
}
