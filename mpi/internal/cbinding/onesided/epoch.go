package onesided

import (
	"sync"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// An epoch is what synchronization calls have begun on a window (MPI-4.1, Section 12.5): package mpi
// takes operations at any time, the standard between certain calls only. A call that is not allowed
// returns MPI_ERR_RMA_SYNC.
type epoch struct {
	mu      sync.Mutex // guards all below
	access  accessEpoch
	targets map[int]bool // of MPI_Win_start, or locked by MPI_Win_lock; MPI_PROC_NULL may be one
	posted  bool         // since MPI_Win_post
}

// An accessEpoch is how operations are allowed.
type accessEpoch uint8

const (
	noAccess    accessEpoch = iota
	fenced                  // by MPI_Win_fence, and there were none since: it may have been the last fence
	fencedInUse             // by MPI_Win_fence
	startedOn               // on the targets of MPI_Win_start
	lockedOn                // on the targets of MPI_Win_lock
	lockedAll               // by MPI_Win_lock_all
	accessEpochs
)

var accessEpochNames = [accessEpochs]string{"outside of an epoch", "after MPI_Win_fence",
	"after operations that MPI_Win_fence has not completed", "after MPI_Win_start", "after MPI_Win_lock",
	"after MPI_Win_lock_all"}

// wrong returns the error of a call. e.mu is held.
func (e *epoch) wrong(what string) error {
	where := accessEpochNames[e.access]
	if e.posted && e.access == noAccess {
		where = "after MPI_Win_post"
	}
	return &cbinding.CallError{Class: abi.ErrRmaSync, Text: what + " is not allowed " + where}
}

// operate begins an operation on a target.
func (e *epoch) operate(rank int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch e.access {
	case fenced:
		e.access = fencedInUse
		return nil
	case fencedInUse, lockedAll:
		return nil
	case startedOn, lockedOn:
		if e.targets[rank] || rank == abi.ProcNull {
			return nil
		}
		return e.wrong("an operation on another rank")
	}
	return e.wrong("an operation")
}

// passive checks a call for a target that needs a lock: a flush, or an operation with a request.
func (e *epoch) passive(what string, rank int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.access == lockedAll || e.access == lockedOn && (e.targets[rank] || rank == abi.ProcNull) {
		return nil
	}
	return e.wrong(what)
}

// passiveAny is passive for all targets.
func (e *epoch) passiveAny(what string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.access == lockedAll || e.access == lockedOn {
		return nil
	}
	return e.wrong(what)
}

// fence checks an MPI_Win_fence.
func (e *epoch) fence() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.access > fencedInUse || e.posted {
		return e.wrong("MPI_Win_fence")
	}
	return nil
}

// set begins or ends an epoch.
func (e *epoch) set(a accessEpoch) {
	e.mu.Lock()
	e.access, e.targets = a, nil
	e.mu.Unlock()
}

// begin begins an epoch that a call has to wait for; if the call fails, cancel ends it.
func (e *epoch) begin(what string, a accessEpoch, targets map[int]bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.access > fenced {
		return e.wrong(what)
	}
	e.access, e.targets = a, targets
	return nil
}

// end checks a call that ends an epoch.
func (e *epoch) end(what string, a accessEpoch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.access != a {
		return e.wrong(what)
	}
	return nil
}

// lock begins MPI_Win_lock of a target.
func (e *epoch) lock(rank int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.access <= fenced:
		e.access, e.targets = lockedOn, map[int]bool{rank: true}
	case e.access != lockedOn:
		return e.wrong("MPI_Win_lock")
	case e.targets[rank]:
		return e.wrong("MPI_Win_lock of the same rank")
	default:
		e.targets[rank] = true
	}
	return nil
}

// locked checks MPI_Win_unlock of a target.
func (e *epoch) locked(rank int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.access != lockedOn {
		return e.wrong("MPI_Win_unlock")
	}
	if !e.targets[rank] {
		return e.wrong("MPI_Win_unlock of another rank")
	}
	return nil
}

// unlock ends the lock of a target.
func (e *epoch) unlock(rank int) {
	e.mu.Lock()
	delete(e.targets, rank)
	if e.access == lockedOn && len(e.targets) == 0 {
		e.access = noAccess
	}
	e.mu.Unlock()
}

// post begins or ends the exposure by MPI_Win_post.
func (e *epoch) post(what string, begin bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.posted == begin {
		return e.wrong(what)
	}
	return nil
}

func (e *epoch) setPosted(on bool) {
	e.mu.Lock()
	e.posted = on
	e.mu.Unlock()
}

// free checks an MPI_Win_free.
func (e *epoch) free() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.access > fencedInUse || e.posted {
		return e.wrong("MPI_Win_free")
	}
	return nil
}
