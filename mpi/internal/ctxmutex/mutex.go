// Package ctxmutex has a mutex that gives up waiting when a context is done.
package ctxmutex

import "context"

// Mutex is a context-aware mutex: Lock gives up when its context is done. It is locked while the
// channel holds an element.
type Mutex chan struct{}

// New returns an unlocked mutex.
func New() Mutex { return make(Mutex, 1) }

// Lock locks the mutex, or returns why ctx is done. A free mutex is locked even if ctx is done.
func (m Mutex) Lock(ctx context.Context) error {
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

// Unlock unlocks the mutex. The goroutine that locked it need not be the one that unlocks it.
func (m Mutex) Unlock() { <-m }
