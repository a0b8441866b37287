package mpi

import "context"

// Serve performs requests on the goroutine of the program that runs the progress hook.
func (s *winService) Serve() { s.run(context.Background(), false) }

// Wake wakes the goroutine of the service.
func (s *winService) Wake() { s.wake.notify() }
