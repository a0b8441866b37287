package fileio

import "context"

// Collective operations of a file run one after the other, in the order in which they were started,
// which is the same on all ranks. Each waits for the channel of the one before and closes its own.

// InOrder runs a collective operation after those that were started before.
func (f *File) InOrder(ctx context.Context, do func() error) error {
	before, done := f.enqueue()
	if err := awaitOrder(ctx, before, done); err != nil {
		return err
	}
	defer close(done)
	return do()
}

// enqueue takes a place behind the collective operations that were started.
func (f *File) enqueue() (before, done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, done = f.last, make(chan struct{})
	f.last = done
	if before == nil {
		before = make(chan struct{})
		close(before)
	}
	return before, done
}

// awaitOrder waits for the operations before one. If ctx ends first it returns an error; the
// operations behind still wait for those before.
func awaitOrder(ctx context.Context, before, done chan struct{}) error {
	select {
	case <-before:
		return nil
	case <-ctx.Done():
		go func() {
			<-before
			close(done)
		}()
		return ctx.Err()
	}
}
