package mpi

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Scratch memory of collectives comes in powers of two between these sizes
// from pools; what is larger is left to the garbage collector.
const (
	minScratchBits = 8
	maxScratchBits = 26
)

// scratch is memory aligned for any element.
type scratch struct {
	words []uint64
	class int // index into scratchPools, or -1
}

var scratchPools [maxScratchBits - minScratchBits + 1]sync.Pool

// getScratch returns scratch memory of at least n bytes.
func getScratch(n int) *scratch {
	class := max(bits.Len(uint(max(n, 1)-1)), minScratchBits) - minScratchBits
	if class >= len(scratchPools) {
		return &scratch{make([]uint64, (n+7)/8), -1}
	}
	if s, ok := scratchPools[class].Get().(*scratch); ok {
		return s
	}
	return &scratch{make([]uint64, 1<<(class+minScratchBits)/8), class}
}

// put gives s back. It must not be used any more. It does nothing if s is nil.
func (s *scratch) put() {
	if s != nil && s.class >= 0 {
		scratchPools[s.class].Put(s)
	}
}

// bytes returns the first n bytes.
func (s *scratch) bytes(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s.words))), len(s.words)*8)[:n:n]
}

// scratch returns n bytes that belong to the call until its end. Their content
// is undefined.
func (k *call) scratch(n int) []byte {
	s := getScratch(n)
	k.held = append(k.held, s)
	return s.bytes(n)
}
