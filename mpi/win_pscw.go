package mpi

import "context"

// Generalized active target synchronization (PSCW): Post, Start, Complete and Wait of some ranks
// only (MPI-4.1, Section 12.5.2).

// Post opens the caller's memory to the given origins, which access it between Start and Complete
// (MPI-4.1, Section 12.5.2). It does not block. It returns ErrEpoch if no [Win.Wait] has followed
// the last Post, ErrRank for a rank that does not exist or is given twice, and a [RankError] if an
// origin has failed. After an error the memory is not open: Post may be called again, with the same
// or other origins.
func (w *Win[T]) Post(origins ...int) error {
	return w.w.Post(origins...)
}

// Start blocks until all given targets have called [Win.Post] for the caller (MPI_Win_start). If
// that fails, as when ctx ends, the window is not started: Start may be called again, with the same
// or other targets. It returns ErrEpoch if no [Win.Complete] has followed the last Start, and
// ErrRank for a rank that does not exist or is given twice.
func (w *Win[T]) Start(ctx context.Context, targets ...int) error {
	return w.w.Start(ctx, targets...)
}

// Complete completes the operations since [Win.Start] and notifies the targets (MPI_Win_complete).
// It blocks until the operations are complete; until then their buffers must not be touched. If ctx
// ends first, the window stays started for the targets that have not been notified: call Complete
// again. It returns the errors of the operations, and ErrEpoch without a Start.
func (w *Win[T]) Complete(ctx context.Context) error {
	return w.w.Complete(ctx)
}

// Wait blocks until all origins of the last [Win.Post] have called Complete: then the effect of
// their operations is in the caller's memory (MPI_Win_wait). It returns ErrEpoch without a Post,
// and if origins have failed a [RankError] for each, when all others have called Complete. The
// memory is still open only if ctx has ended: call Wait again.
func (w *Win[T]) Wait(ctx context.Context) error {
	return w.w.Wait(ctx)
}

// Test reports whether [Win.Wait] would return at once, and if so does what it does (MPI_Win_test).
// It does not block. It returns ErrEpoch without a Post, and true with a [RankError] if origins have
// failed and all others have called Complete.
func (w *Win[T]) Test() (bool, error) {
	return w.w.Test()
}
