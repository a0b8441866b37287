package bufpool

import (
	"math/bits"
	"sync"
	"unsafe"
)

// The smallest and the largest size class: 256 bytes and 64 MiB. Larger buffers are not pooled;
// the garbage collector frees them.
const (
	minBits = 8
	maxBits = 26
)

// A Buffer is temporary memory. Its owner returns it with Put.
type Buffer struct {
	// Words is the whole memory, which may be longer than what Get was asked for.
	Words []uint64

	class int // index into pools, or -1: not pooled
}

var pools [maxBits - minBits + 1]sync.Pool

// Get returns a buffer of at least n bytes. Its content is undefined.
func Get(n int) *Buffer {
	class := max(bits.Len(uint(max(n, 1)-1)), minBits) - minBits
	if class >= len(pools) {
		return &Buffer{make([]uint64, (n+7)/8), -1}
	}
	if b, ok := pools[class].Get().(*Buffer); ok {
		return b
	}
	return &Buffer{make([]uint64, 1<<(class+minBits)/8), class}
}

// Put returns b to its pool. The caller must not use b, or slices of it, afterwards. Put of nil
// does nothing.
func (b *Buffer) Put() {
	if b != nil && b.class >= 0 {
		pools[b.class].Put(b)
	}
}

// Bytes returns the first n bytes, which alias the buffer.
func (b *Buffer) Bytes(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b.Words))), len(b.Words)*8)[:n:n]
}
