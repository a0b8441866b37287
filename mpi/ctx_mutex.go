package mpi

import "context"

// ctxMutex is a context-aware mutex: lock gives up when its context is done. It is
// locked while the channel holds an element.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// lock locks the mutex, or returns why ctx is done. A free mutex is locked even if ctx is done.
func (m ctxMutex) lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	default:
	}
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unlock unlocks the mutex. The goroutine that locked it need not be the one that unlocks it.
func (m ctxMutex) unlock() { <-m }
