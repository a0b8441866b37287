//go:build !linux

package fileio

import "os"

// advise does nothing: only Linux supports it here.
func advise(*os.File, *Hints) {}
