//go:build !linux

package bench

import "runtime"

// apart leaves it to the system which processor the goroutine has.
func apart(int) { runtime.LockOSThread() }
