package testenv

import "runtime"

// Goroutines returns how many goroutines there are, as soon as there are at most n, or after a
// while. One that has returned is counted until its thread goes on to another one, even after
// synctest.Wait.
func Goroutines(n int) int {
	for range 1_000_000 {
		if runtime.NumGoroutine() <= n {
			break
		}
		runtime.Gosched()
	}
	return runtime.NumGoroutine()
}
