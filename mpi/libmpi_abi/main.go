//go:build linux && cgo

package main

/*
#cgo CFLAGS: -I${SRCDIR}/include -O2 -Wall
#include "callbacks.h"
*/
import "C"

import (
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// main is never called: a C program has its own.
func main() {}

// recovered makes a panic in Go an error code of the C function, so that it does not
// reach C.
func recovered(proc string, code *int32) {
	if v := recover(); v != nil {
		*code = int32(cbinding.Panicked(proc, v))
	}
}
