package cbinding

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// TestPackOfC packs two kinds of items one behind the other, in both representations, and unpacks them
// in another layout.
func TestPackOfC(t *testing.T) {
	returning(t)
	gaps := newtype(t, func(p uintptr) int { return TypeVector(3, 1, -2, abi.Int, p, false) })
	from := heap[int32](1, 2, 3, 4, 5)
	long := heap[int64](-6)
	b := newBox()
	rep := cstring("external32")

	must(t, PackSize(2, gaps, abi.CommWorld, addr(&b.n), false))
	must(t, PackExternalSize(rep, 2, abi.Long, addr(&b.long)))
	if b.n != 24 || b.long != 8 {
		t.Errorf("sizes %d and %d, want 24 and 8", b.n, b.long)
	}
	packed := heap(make([]byte, 32)...)
	b.n = 4
	must(t, Pack(from+16, 1, gaps, packed, 32, addr(&b.n), abi.CommWorld, false))
	must(t, Pack(long, 1, abi.Long, packed, 32, addr(&b.n), abi.CommWorld, false))
	if b.n != 24 {
		t.Errorf("position %d, want 24", b.n)
	}
	b.long = 4
	must(t, Unpack(packed, 32, addr(&b.long), addr(&b.ints[0]), 3, abi.Int, abi.CommWorld, true))
	must(t, Unpack(packed, 32, addr(&b.long), addr(&b.ints[3]), 1, abi.Long, abi.CommWorld, true))
	if got := fmt.Sprint(b.ints[:5], b.long); got != "[5 3 1 -6 -1] 24" {
		t.Errorf("unpacked %s", got)
	}

	b.long = 0
	must(t, PackExternal(rep, from+16, 1, gaps, packed, 32, addr(&b.long)))
	must(t, PackExternal(rep, long, 1, abi.Long, packed, 32, addr(&b.long)))
	want := []byte{0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfa}
	if got := array[byte](packed, 16); string(got) != string(want) || b.long != 16 {
		t.Errorf("external32: % x, position %d, want % x", got, b.long, want)
	}
	b.long = 0
	back := heap[int32](0, 0, 0, 0, 0)
	must(t, UnpackExternal(rep, packed, 16, addr(&b.long), back+16, 1, gaps))
	must(t, UnpackExternal(rep, packed, 16, addr(&b.long), addr(&b.value), 1, abi.Long))
	if got := fmt.Sprint(array[int32](back, 5), int64(b.value)); got != "[1 0 3 0 5] -6" {
		t.Errorf("from external32: %s", got)
	}

	for _, tt := range []struct {
		name  string
		call  func() int
		class int
		text  string
	}{
		{"room", func() int {
			return Pack(from, 5, abi.Int, packed, 19, addr(&b.n), abi.CommWorld, false)
		}, abi.ErrTruncate, "outsize 19"},
		{"data", func() int {
			return Unpack(packed, 19, addr(&b.n), from, 5, abi.Int, abi.CommWorld, false)
		}, abi.ErrTruncate, "insize 19"},
		{"position", func() int {
			return Pack(from, 1, abi.Int, packed, -5, addr(&b.n), abi.CommWorld, false)
		}, abi.ErrArg, "size -5"},
		{"null position", func() int {
			return Pack(from, 1, abi.Int, packed, 32, 0, abi.CommWorld, false)
		}, abi.ErrArg, "position NULL"},
		{"null output", func() int {
			return Pack(from, 1, abi.Int, 0, 32, addr(&b.n), abi.CommWorld, false)
		}, abi.ErrBuffer, ""},
		{"null input", func() int {
			return Pack(0, 1, abi.Int, packed, 32, addr(&b.n), abi.CommWorld, false)
		}, abi.ErrBuffer, ""},
		{"count", func() int {
			return Pack(from, -1, abi.Int, packed, 32, addr(&b.n), abi.CommWorld, false)
		}, abi.ErrCount, "-1"},
		{"communicator", func() int {
			return PackSize(1, abi.Int, abi.CommNull, addr(&b.n), false)
		}, abi.ErrComm, ""},
		{"representation", func() int {
			return PackExternalSize(cstring("native"), 1, abi.Int, addr(&b.long))
		}, abi.ErrArg, "native"},
		{"conversion", func() int {
			return PackExternal(rep, heap[int64](1<<40), 1, abi.Long, packed, 32, addr(&b.long))
		}, abi.ErrConversion, ""},
	} {
		b.n, b.long = 0, 0
		wantError(t, tt.call(), tt.class, tt.text)
		if b.n != 0 || b.long != 0 {
			t.Errorf("%s: the position has moved to %d and %d", tt.name, b.n, b.long)
		}
	}
	must(t, GetAddress(from, addr(&b.value)))
	if b.value != from {
		t.Errorf("address %#x, want %#x", b.value, from)
	}
	if n := testing.AllocsPerRun(100, func() {
		b.n = 0
		Pack(from+16, 1, gaps, packed, 32, addr(&b.n), abi.CommWorld, false)
		b.n = 0
		Unpack(packed, 32, addr(&b.n), back+16, 1, gaps, abi.CommWorld, false)
	}); n != 0 {
		t.Errorf("packing and unpacking allocates %v times", n)
	}
	must(t, b.free(TypeFree, gaps))
}
