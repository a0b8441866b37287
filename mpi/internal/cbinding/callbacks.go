package cbinding

import (
	"os"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// The functions of C that the library calls, through trampolines that package libmpi_abi sets. fn is
// the address of a function of the program. Those with a result return the error code of it.
var (
	// CallUserOp calls an MPI_User_function, or with large an MPI_User_function_c.
	CallUserOp func(fn, in, inout uintptr, count int, datatype abi.Handle, large bool)

	// CallCopyAttr calls an attribute copy function of a communicator, window or datatype. flag tells
	// whether the new object has the attribute, with the value out.
	CallCopyAttr func(fn uintptr, object abi.Handle, keyval int, extra, in uintptr) (out uintptr, flag bool, code int)
	// CallDeleteAttr calls an attribute delete function.
	CallDeleteAttr func(fn uintptr, object abi.Handle, keyval int, value, extra uintptr) (code int)

	// CallErrhandler calls an error handler function of a communicator, window, file or session. It
	// returns the code as the function leaves it.
	CallErrhandler func(fn uintptr, object abi.Handle, code int) int

	// CallGrequestQuery calls the query function of a generalized request with a status to fill.
	CallGrequestQuery func(fn, extra, status uintptr) (code int)
	// CallGrequestFree calls its free function.
	CallGrequestFree func(fn, extra uintptr) (code int)
	// CallGrequestCancel calls its cancel function.
	CallGrequestCancel func(fn, extra uintptr, complete bool) (code int)

	// CallDatarepExtent calls the function of a data representation that returns the extent of a
	// datatype in a file.
	CallDatarepExtent func(fn uintptr, datatype abi.Handle, extra uintptr) (extent, code int)
	// CallDatarepConvert calls a conversion function, or with large its _c form.
	CallDatarepConvert func(fn, user uintptr, datatype abi.Handle, count int, file uintptr, position int, extra uintptr,
		large bool) (code int)

	// Allocate returns n bytes of C memory, aligned to a power of 2, or 0.
	Allocate func(n, alignment int) uintptr
	// Release gives memory of Allocate back.
	Release func(p uintptr)

	// ThreadID returns a number that tells threads of the process apart.
	ThreadID = func() uint64 { return 0 }

	// AtExit registers f to be called when the process exits by exit or a return from main.
	AtExit = func(f func()) {}
	// FlushOutput writes what C has buffered for standard output and error.
	FlushOutput = func() {}
	// ExitProcess ends the process after output of C has been written.
	ExitProcess = os.Exit
)
