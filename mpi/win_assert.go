package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/rma"
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
	AssertNoCheck = Assert(rma.AssertNoCheck)
	// AssertNoStore (MPI_MODE_NOSTORE) promises that the caller has not changed its memory since
	// the last synchronization.
	AssertNoStore = Assert(rma.AssertNoStore)
	// AssertNoPut (MPI_MODE_NOPUT) promises that other ranks will not change the caller's memory
	// until the next synchronization.
	AssertNoPut = Assert(rma.AssertNoPut)
	// AssertNoPrecede (MPI_MODE_NOPRECEDE) promises that the caller has started no operations that
	// the Fence has to complete. All ranks must promise it. If there are some, they are completed,
	// and Fence returns ErrEpoch.
	AssertNoPrecede = Assert(rma.AssertNoPrecede)
	// AssertNoSucceed (MPI_MODE_NOSUCCEED) promises that no operations follow the Fence. All ranks
	// must promise it. Together with AssertNoPrecede the Fence does not wait for other ranks,
	// except on a window of shared memory.
	AssertNoSucceed = Assert(rma.AssertNoSucceed)
)

// joinAsserts combines asserts, and returns ErrOption if one is not allowed.
func joinAsserts(asserts []Assert, allowed rma.Assert) (rma.Assert, error) {
	var sum rma.Assert
	for _, a := range asserts {
		sum |= rma.Assert(a)
	}
	if err := sum.Check(allowed); err != nil {
		return 0, err
	}
	return sum, nil
}

// PostAssert is [Win.Post] with promises (MPI_Win_post).
func (w *Win[T]) PostAssert(a Assert, origins ...int) error {
	return w.w.PostAssert(a, origins...)
}

// StartAssert is [Win.Start] with promises (MPI_Win_start). It blocks as Start does.
func (w *Win[T]) StartAssert(ctx context.Context, a Assert, targets ...int) error {
	return w.w.StartAssert(ctx, a, targets...)
}
