//go:build !linux

package affinity

import "errors"

// Allowed returns the processors that the calling thread may run on, in ascending
// order. It returns nil where that cannot be told, as here.
func Allowed() []int { return nil }

// Set lets the calling thread, to which its goroutine must be locked, run on the given
// processors only, and so the threads and processes that it starts. Here it cannot.
func Set(...int) error { return errors.ErrUnsupported }
