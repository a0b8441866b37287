package mpi

import (
	"context"
	"fmt"
)

// An Assert is a promise of a program about a synchronization call of a window, which makes the
// call cheaper (MPI-4.1, Section 12.5.5). Several are combined with |. A promise that has no
// meaning for a call gives ErrOption.
type Assert uint8

// Promises for synchronization calls.
const (
	// AssertNoCheck (MPI_MODE_NOCHECK) promises for Lock and LockAll that no other rank holds or
	// requests a lock that excludes this one: the lock is taken and released without a message. For
	// StartAssert it promises that all targets have called PostAssert before, also with
	// AssertNoCheck: neither call sends anything.
	AssertNoCheck Assert = 1 << iota
	// AssertNoStore (MPI_MODE_NOSTORE) promises that the caller has not changed its memory since
	// the last synchronization.
	AssertNoStore
	// AssertNoPut (MPI_MODE_NOPUT) promises that other ranks will not change the caller's memory
	// until the next synchronization.
	AssertNoPut
	// AssertNoPrecede (MPI_MODE_NOPRECEDE) promises that the caller has started no operations that
	// the Fence has to complete. All ranks must promise it. If there are some, they are completed,
	// and Fence returns ErrEpoch.
	AssertNoPrecede
	// AssertNoSucceed (MPI_MODE_NOSUCCEED) promises that no operations follow the Fence. All ranks
	// must promise it. Together with AssertNoPrecede the Fence does not wait for other ranks,
	// except on a window of shared memory.
	AssertNoSucceed
)

// Promises that each call takes. Windows are coherent, so AssertNoStore and AssertNoPut save
// nothing.
const (
	assertsFence = AssertNoStore | AssertNoPut | AssertNoPrecede | AssertNoSucceed
	assertsPost  = AssertNoCheck | AssertNoStore | AssertNoPut
	assertsStart = AssertNoCheck
	assertsLock  = AssertNoCheck
)

// joinAsserts combines asserts, and returns ErrOption if one is not allowed.
func joinAsserts(asserts []Assert, allowed Assert) (Assert, error) {
	var sum Assert
	for _, a := range asserts {
		sum |= a
	}
	if sum&^allowed != 0 {
		return 0, fmt.Errorf("%w: assert %#x in a call that takes %#x", ErrOption, uint8(sum), uint8(allowed))
	}
	return sum, nil
}

// PostAssert is [Win.Post] with promises (MPI_Win_post).
func (w *Win[T]) PostAssert(a Assert, origins ...int) error {
	t := w.w.of.enter()
	err := w.w.post(origins, a)
	w.w.of.leave(t, "Win.Post", NoPeer, 0, 0, err)
	return err
}

// StartAssert is [Win.Start] with promises (MPI_Win_start). It blocks as Start does.
func (w *Win[T]) StartAssert(ctx context.Context, a Assert, targets ...int) error {
	t := w.w.of.enter()
	err := w.w.start(ctx, targets, a)
	w.w.of.leave(t, "Win.Start", NoPeer, 0, 0, err)
	return err
}

// quiet reports whether no operation of the caller is in progress.
func (w *window) quiet() bool {
	for rank := range w.to {
		if !w.to[rank].quiet() {
			return false
		}
	}
	return true
}

func (t *winTarget) quiet() bool {
	return !t.copied.Load() && !t.aggregated.some.Load() && t.idle()
}

// idle reports whether the target has acknowledged everything. It ignores aggregated Puts, which
// have not been sent, and copies, which are complete at once.
func (t *winTarget) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.unsure && len(t.sends) == 0 && len(t.results) == 0 && t.proof == nil && (t.conn == nil || t.conn.Idle())
}
