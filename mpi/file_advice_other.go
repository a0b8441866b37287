//go:build !linux

package mpi

import "os"

// advise does nothing: only Linux is told.
func advise(*os.File, *fileHints) {}
