//go:build linux && cgo

package main

/*
#include "signals.h"
*/
import "C"

// The handlers of the runtime are there before init functions run.
func init() { C.weft_install_signals() }
