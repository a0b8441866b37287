package verbs

import "context"

// bell wakes who waits for something that is queued elsewhere. It holds at most
// one ring: who takes it and leaves something for others rings again.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

// ring never blocks.
func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// await returns what take takes. It blocks until take has something or an error,
// or ctx is done.
func await[T any](ctx context.Context, b bell, take func() (v T, ok bool, err error)) (T, error) {
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
