//go:build linux && cgo

package main

/*
#include "callbacks.h"
*/
import "C"

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"golang.org/x/sys/unix"
)

func address(p uintptr) C.uintptr_t   { return C.uintptr_t(p) }
func handle(h abi.Handle) C.uintptr_t { return C.uintptr_t(h) }
func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func init() {
	cbinding.CallUserOp = func(fn, in, inout uintptr, count int, datatype abi.Handle, large bool) {
		C.weft_call_user_op(address(fn), address(in), address(inout), C.int64_t(count), handle(datatype), flag(large))
	}
	cbinding.CallCopyAttr = func(fn uintptr, object abi.Handle, keyval int, extra, in uintptr) (uintptr, bool, int) {
		var out C.uintptr_t
		var copied C.int
		code := C.weft_call_copy_attr(address(fn), handle(object), C.int(keyval), address(extra), address(in), &out, &copied)
		return uintptr(out), copied != 0, int(code)
	}
	cbinding.CallDeleteAttr = func(fn uintptr, object abi.Handle, keyval int, value, extra uintptr) int {
		return int(C.weft_call_delete_attr(address(fn), handle(object), C.int(keyval), address(value), address(extra)))
	}
	cbinding.CallErrhandler = func(fn uintptr, object abi.Handle, code int) int {
		return int(C.weft_call_errhandler(address(fn), handle(object), C.int(code)))
	}
	cbinding.CallGrequestQuery = func(fn, extra, status uintptr) int {
		return int(C.weft_call_grequest_query(address(fn), address(extra), address(status)))
	}
	cbinding.CallGrequestFree = func(fn, extra uintptr) int {
		return int(C.weft_call_grequest_free(address(fn), address(extra)))
	}
	cbinding.CallGrequestCancel = func(fn, extra uintptr, complete bool) int {
		return int(C.weft_call_grequest_cancel(address(fn), address(extra), flag(complete)))
	}
	cbinding.CallDatarepExtent = func(fn uintptr, datatype abi.Handle, extra uintptr) (int, int) {
		var extent C.int64_t
		code := C.weft_call_datarep_extent(address(fn), handle(datatype), &extent, address(extra))
		return int(extent), int(code)
	}
	cbinding.CallDatarepConvert = func(fn, user uintptr, datatype abi.Handle, count int, file uintptr, position int,
		extra uintptr, large bool) int {
		return int(C.weft_call_datarep_convert(address(fn), address(user), handle(datatype), C.int64_t(count), address(file),
			C.int64_t(position), address(extra), flag(large)))
	}
	cbinding.Allocate = func(n, alignment int) uintptr {
		return uintptr(C.weft_allocate(C.int64_t(n), C.int64_t(alignment)))
	}
	cbinding.Release = func(p uintptr) { C.weft_release(address(p)) }
	cbinding.ThreadID = func() uint64 { return uint64(unix.Gettid()) }
	cbinding.AtExit = func(f func()) {
		exits = append(exits, f)
		C.weft_at_exit()
	}
	cbinding.FlushOutput = func() { C.weft_flush() }
	cbinding.ExitProcess = func(code int) { C.weft_exit(C.int(code)) }
}

// exits are to be called when the process exits. cbinding registers one once.
var exits []func()

//export weft_exiting
func weft_exiting() {
	for _, f := range exits {
		f()
	}
}
