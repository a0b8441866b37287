package bufpool

import (
	"testing"
	"unsafe"
)

func TestGet(t *testing.T) {
	for _, tt := range []struct{ n, size int }{
		{0, 256}, {1, 256}, {256, 256}, {257, 512}, {4096, 4096}, {4097, 8192},
		{1 << 26, 1 << 26}, {1<<26 + 1, 1<<26 + 8}, // above the largest class: rounded to words only
	} {
		b := Get(tt.n)
		if got := len(b.Words) * 8; got != tt.size {
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
