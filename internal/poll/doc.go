// Package poll is the engine of adaptive polling: a goroutine that waits first spins, that
// is, polls the sources of events itself, and then parks.
//
// A [Chooser] decides for each wait whether to spin and for how long. A [Loop] is how to spin.
// [Enter] bounds the goroutines of the process that do so. A [Yielder] tells a goroutine
// that goes on polling when to let others run, and a [Server] keeps one polling after it has
// read something for others.
//
// An answer that comes while a goroutine spins costs no wake-up, which takes up to 50 µs. On a
// machine with other work to do spinning loses: the scheduler favours threads that slept.
package poll
