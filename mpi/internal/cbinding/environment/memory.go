package environment

import (
	"strconv"
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// infoAlignment is the info key of MPI_Alloc_mem for the alignment of memory (MPI-4.1, Section 9.2).
const infoAlignment = "mpi_minimum_memory_alignment"

// defaultAlignment suits values of all types and is a cache line.
const defaultAlignment = 64

// allocated are the addresses that MPI_Alloc_mem has returned.
var allocated = struct {
	sync.Mutex
	at map[uintptr]bool
}{at: make(map[uintptr]bool)}

// AllocMem is MPI_Alloc_mem.
func AllocMem(size int, info abi.Handle, baseptr uintptr) int {
	const proc = "MPI_Alloc_mem"
	if size < 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "size", size, "is negative"))
	}
	hints, err := cbinding.HintsOf(info)
	if err == nil {
		err = cbinding.Out("baseptr", baseptr)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	align := defaultAlignment
	if s := hints[infoAlignment]; s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n <= 0 || n > mpi.MaxAlignment || n&(n-1) != 0 {
			return cbinding.Fail(proc, cbinding.ArgError(abi.ErrInfoValue, infoAlignment, s,
				"is no power of 2 up to "+strconv.Itoa(mpi.MaxAlignment)))
		}
		align = max(align, n)
	}
	p := cbinding.Allocate(max(size, 1), align)
	if p == 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrNoMem, "size", size, "is more memory than there is"))
	}
	allocated.Lock()
	allocated.at[p] = true
	allocated.Unlock()
	*cbinding.At[uintptr](baseptr) = p
	return 0
}

// FreeMem is MPI_Free_mem.
func FreeMem(base uintptr) int {
	allocated.Lock()
	ok := allocated.at[base]
	delete(allocated.at, base)
	allocated.Unlock()
	if !ok {
		return cbinding.Fail("MPI_Free_mem", cbinding.ArgError(abi.ErrBase, "base", "0x"+strconv.FormatUint(uint64(base), 16),
			"was not allocated with MPI_Alloc_mem"))
	}
	cbinding.Release(base)
	return 0
}
