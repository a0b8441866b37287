//go:build linux && cgo

package main

/*
#include "answers.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// entries is a table of answers.h in C memory.
type entries [C.WEFT_ENTRIES]uint64

func table(first *C.uint64_t) *entries { return (*entries)(unsafe.Pointer(first)) }

var (
	commRanks = table(&C.weft_comm_ranks[0])
	commSizes = table(&C.weft_comm_sizes[0])
	typeSizes = table(&C.weft_type_sizes[0])
	phaseNow  = (*int32)(unsafe.Pointer(&C.weft_phase_now))
)

// at returns the entry that h may be in.
func (e *entries) at(h abi.Handle) *uint64 {
	if h < C.WEFT_FIXED {
		return &e[h]
	}
	return &e[C.WEFT_FIXED+h%C.WEFT_SHARED]
}

// put stores the value of h, if both fit an entry.
func (e *entries) put(h abi.Handle, value int) {
	if h == 0 || h > 1<<31-1 || value < 0 || value > 1<<31-1 {
		return
	}
	atomic.StoreUint64(e.at(h), uint64(h)<<32|uint64(value))
}

// drop forgets the value of h.
func (e *entries) drop(h abi.Handle) {
	p := e.at(h)
	if v := atomic.LoadUint64(p); abi.Handle(v>>32) == h {
		atomic.CompareAndSwapUint64(p, v, 0)
	}
}

func init() {
	cbinding.CacheComm = func(h abi.Handle, rank, size int) {
		commRanks.put(h, rank)
		commSizes.put(h, size)
	}
	cbinding.CacheType = func(h abi.Handle, size int) { typeSizes.put(h, size) }
	cbinding.Uncache = func(h abi.Handle) {
		commRanks.drop(h)
		commSizes.drop(h)
		typeSizes.drop(h)
	}
	cbinding.CachePhase = func(phase int) {
		atomic.StoreInt32(phaseNow, int32(phase))
		if phase == 2 { // what a session still uses is asked for in Go
			for i := range commRanks {
				atomic.StoreUint64(&commRanks[i], 0)
				atomic.StoreUint64(&commSizes[i], 0)
				atomic.StoreUint64(&typeSizes[i], 0)
			}
		}
	}
}
