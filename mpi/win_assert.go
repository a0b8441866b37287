package mpi

import (
	"context"
	"fmt"
)

// An Assert is what a program promises about a synchronization call of a
// window, so that it costs less (MPI-4.1, Section 12.5.5). Several are combined
// with |. A promise that has no meaning for a call gives ErrOption.
type Assert uint8

// Promises.
const (
	// AssertNoCheck (MPI_MODE_NOCHECK): for Lock and LockAll, that nobody holds
	// or asks for a lock that excludes this one: it is taken, and given back,
	// without a message. For StartAssert, that all targets have called
	// PostAssert, also with AssertNoCheck, before: neither sends anything.
	AssertNoCheck Assert = 1 << iota
	// AssertNoStore (MPI_MODE_NOSTORE): the caller has not changed its memory
	// since the last synchronization.
	AssertNoStore
	// AssertNoPut (MPI_MODE_NOPUT): others will not change the caller's memory
	// until the next synchronization.
	AssertNoPut
	// AssertNoPrecede (MPI_MODE_NOPRECEDE): the Fence completes no operations
	// of the caller: Fence does not look for any. All ranks must promise it. If
	// there are some they are completed, and Fence returns ErrEpoch.
	AssertNoPrecede
	// AssertNoSucceed (MPI_MODE_NOSUCCEED): no operations follow the Fence. All
	// ranks must promise it. With AssertNoPrecede nobody has to wait for
	// anybody, except for windows of shared memory.
	AssertNoSucceed
)

// Those that calls take. Windows are coherent here: AssertNoStore and
// AssertNoPut save nothing.
const (
	assertsFence = AssertNoStore | AssertNoPut | AssertNoPrecede | AssertNoSucceed
	assertsPost  = AssertNoCheck | AssertNoStore | AssertNoPut
	assertsStart = AssertNoCheck
	assertsLock  = AssertNoCheck
)

// joinAsserts combines asserts, of which only those allowed make sense.
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

// PostAssert is Post with promises (MPI_Win_post).
func (w *Win[T]) PostAssert(a Assert, origins ...int) error {
	t := w.w.of.enter()
	err := w.w.post(origins, a)
	w.w.of.leave(t, "Win.Post", NoPeer, 0, 0, err)
	return err
}

// StartAssert is Start with promises (MPI_Win_start). It blocks as Start does.
func (w *Win[T]) StartAssert(ctx context.Context, a Assert, targets ...int) error {
	t := w.w.of.enter()
	err := w.w.start(ctx, targets, a)
	w.w.of.leave(t, "Win.Start", NoPeer, 0, 0, err)
	return err
}

// quiet reports whether no operation of the caller is under way.
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

// idle reports whether the target has acknowledged everything. It leaves out aggregated Puts, which
// have not been sent, and copies, which are complete at once.
func (t *winTarget) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.unsure && len(t.sends) == 0 && len(t.results) == 0 && t.proof == nil && (t.conn == nil || t.conn.quiet())
}

// quiet reports whether all operations are complete, here and at the target.
func (c *rmaConn) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done == c.posted && c.wrote <= c.proving && c.err == nil
}
