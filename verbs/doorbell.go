package verbs

import "context"

// doorbell wakes a goroutine that waits for an entry of a queue. It holds at most one
// signal, so a goroutine that takes it and leaves entries in the queue signals again.
type doorbell chan struct{}

func newDoorbell() doorbell { return make(doorbell, 1) }

// signal wakes one waiting goroutine, or the next that waits. It never blocks.
func (b doorbell) signal() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// await blocks until take returns ok or an error, or ctx is done, and returns what take
// returned. It calls take at first and after each signal of b.
func await[T any](ctx context.Context, b doorbell, take func() (v T, ok bool, err error)) (T, error) {
	for {
		v, ok, err := take()
		if ok || err != nil {
			return v, err
		}
		select {
		case <-b:
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}
