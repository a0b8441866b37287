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
	// packetSize is the size of a class between two powers of two, 1,536 bytes: the payload of
	// a datagram on an Ethernet path (MTU 1,500 bytes) would waste nearly a third of 2 KiB.
	packetSize = 1536

	powers      = maxBits - minBits + 1 // how many classes are powers of two
	packetClass = powers
	unpooled    = -1
)

// A Buffer is temporary memory. Its owner returns it with Put.
type Buffer struct {
	// Words is the whole memory, which may be longer than what Get was asked for.
	Words []uint64

	class int // index into pools, or unpooled
}

// pools has 1<<(minBits+i) bytes in pools[i], and packetSize bytes in pools[packetClass].
var pools [powers + 1]sync.Pool

// Get returns a buffer of at least n bytes. Its content is undefined.
func Get(n int) *Buffer {
	class, size := classOf(n)
	if class != unpooled {
		if b, ok := pools[class].Get().(*Buffer); ok {
			return b
		}
	}
	return &Buffer{make([]uint64, size/8), class}
}

// classOf returns the class for n bytes, and the size of its buffers.
func classOf(n int) (class, size int) {
	switch {
	case n > packetSize*2/3 && n <= packetSize:
		return packetClass, packetSize
	case n > 1<<maxBits:
		return unpooled, (n + 7) &^ 7
	}
	class = max(bits.Len(uint(max(n, 1)-1)), minBits) - minBits
	return class, 1 << (class + minBits)
}

// Put returns b to its pool. The caller must not use b, or slices of it, afterwards. Put of nil
// does nothing.
func (b *Buffer) Put() {
	if b != nil && b.class != unpooled {
		pools[b.class].Put(b)
	}
}

// Released is Put. With it a Buffer can own the memory of a message, as sctp and ddp define
// owners, and is recycled when the message has been acknowledged.
func (b *Buffer) Released(error) { b.Put() }

// Size returns how many bytes b holds, which is at least what Get was asked for.
func (b *Buffer) Size() int { return 8 * len(b.Words) }

// Bytes returns the first n bytes, which alias the buffer.
func (b *Buffer) Bytes(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b.Words))), len(b.Words)*8)[:n:n]
}
