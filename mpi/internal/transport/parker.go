package transport

// Parker parks a goroutine in the transport until another one wakes it.
type Parker interface {
	// Wait blocks until Wake is called, and reports true, or until stop is closed. Meanwhile the goroutine may receive
	// for the transport.
	Wait(stop <-chan struct{}) bool
	Wake()
}
