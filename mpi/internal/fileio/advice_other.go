//go:build !linux

package fileio

import "os"

// advise does nothing: only Linux is told.
func advise(*os.File, *Hints) {}
