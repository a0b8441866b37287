package mpi

import "context"

// turn is a lock for which one waits no longer than a context lasts. It is held while
// it has an element.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn. One that is free is taken even if ctx is over.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give ends the turn of who has it.
func (t turn) give() { <-t }
