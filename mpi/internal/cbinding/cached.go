package cbinding

import (
	"fmt"
	"runtime/debug"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// What C answers without calling Go, because a call would cost more than the answer. Package
// libmpi_abi sets these variables. A value that is not stored is asked for in Go.
var (
	// CacheComm stores what MPI_Comm_rank and MPI_Comm_size return for a communicator. It is called
	// once the handle is valid.
	CacheComm = func(h abi.Handle, rank, size int) {}
	// CacheType stores what MPI_Type_size returns for a datatype.
	CacheType = func(h abi.Handle, size int) {}
	// Uncache forgets the values of a communicator or a datatype. It is called before the handle is freed.
	Uncache = func(h abi.Handle) {}
	// CachePhase stores what MPI_Initialized and MPI_Finalized return: 0 before MPI_Init, 1 after it,
	// 2 after MPI_Finalize.
	CachePhase = func(phase int) {}
)

// Panicked ends a call of C in which Go code has panicked, with MPI_ERR_INTERN. The message has the
// stack: it is a defect of weft.
func Panicked(proc string, value any) int {
	return Fail(proc, &CallError{Class: abi.ErrIntern, Text: fmt.Sprintf("internal error: %v\n%s", value, debug.Stack())})
}
