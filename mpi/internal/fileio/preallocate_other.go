//go:build !linux

package fileio

import "os"

// preallocate makes a file at least n bytes long.
func preallocate(f *os.File, n int64) error { return lengthen(f, n) }
