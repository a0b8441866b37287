package bufpool

import (
	"testing"
	"unsafe"
)

func TestGet(t *testing.T) {
	for _, tt := range []struct{ n, size int }{
		{0, 256}, {1, 256}, {256, 256}, {257, 512}, {1024, 1024}, {1025, 1536}, {1452, 1536}, {1536, 1536}, {1537, 2048}, {4096, 4096}, {4097, 8192},
		{1 << 26, 1 << 26}, {1<<26 + 1, 1<<26 + 8}, // above the largest class: rounded to words only
	} {
		b := Get(tt.n)
		if got := b.Size(); got != tt.size {
			t.Errorf("Get(%d) holds %d bytes, want %d", tt.n, got, tt.size)
		}
		if p := b.Bytes(tt.n); len(p) != tt.n || cap(p) != tt.n {
			t.Errorf("Bytes(%d): length %d, capacity %d", tt.n, len(p), cap(p))
		}
		if uintptr(unsafe.Pointer(unsafe.SliceData(b.Words)))%8 != 0 {
			t.Errorf("Get(%d) is not aligned", tt.n)
		}
		b.Put()
	}
	var none *Buffer
	none.Put()
}

// A buffer is not given out twice, and getting one that was returned does not allocate.
func TestReuse(t *testing.T) {
	a, b := Get(1000), Get(1000)
	if a == b || &a.Words[0] == &b.Words[0] {
		t.Error("a buffer was given out twice")
	}
	a.Put()
	b.Released(nil)
	// The pool may forget a buffer, in a garbage collection for one.
	if n := testing.AllocsPerRun(1000, func() { Get(100_000).Put() }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
