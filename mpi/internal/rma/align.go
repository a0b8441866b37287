package rma

import (
	"fmt"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// NoMemory is the error of a window that needs n bytes of memory, which is too much.
func NoMemory(n int) error {
	return mpierr.WithClass(mpierr.ClassNoMem, fmt.Errorf("%w: window of %d bytes is more memory than there is", mpierr.ErrCount, n))
}

// AlignedBytes returns n new bytes that begin at a multiple of align and of 8.
func AlignedBytes(n, align int) []byte {
	align = max(align, 8)
	all := datatype.Bytes(make([]uint64, (n+align+7)/8))
	skip := 0
	if over := int(uintptr(unsafe.Pointer(unsafe.SliceData(all))) % uintptr(align)); over > 0 {
		skip = align - over
	}
	return all[skip : skip+n : skip+n]
}
