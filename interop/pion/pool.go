package sctp

import (
	"math/bits"
	"sync"
)

const (
	// minClass and maxClass are the logarithms of the smallest and the largest buffer of the pools,
	// 64 bytes and 1 MiB. Larger ones are left to the garbage collector.
	minClass = 6
	maxClass = 20
)

// buffer is memory of a pool.
type buffer struct{ b []byte }

var pools [maxClass + 1]sync.Pool

// class returns the logarithm of the size of buffers for n bytes.
func class(n int) int { return max(bits.Len(uint(max(n, 1)-1)), minClass) }

// getBuffer returns a buffer of at least n bytes, not cleared.
func getBuffer(n int) *buffer {
	c := class(n)
	if c > maxClass {
		return &buffer{make([]byte, n)}
	}
	if b, _ := pools[c].Get().(*buffer); b != nil {
		return b
	}
	return &buffer{make([]byte, 1<<c)}
}

// put gives the buffer back. Nothing may use it after that.
func (b *buffer) put() {
	if b == nil {
		return
	}
	if c := class(len(b.b)); c <= maxClass && len(b.b) == 1<<c {
		pools[c].Put(b)
	}
}
