package rma

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Access is a set of rights to a window.
type Access uint8

// Rights of the other ranks to a window.
const (
	AccessRead   Access = 1 << iota // allows Get
	AccessWrite                     // allows Put
	AccessUpdate                    // allows updates
	AccessAll    = AccessRead | AccessWrite | AccessUpdate
)

// LockMode is the kind of a lock on a window.
type LockMode uint8

// Lock modes (MPI-4.1, Section 12.5.3).
const (
	LockShared    LockMode = iota + 1 // others may hold a shared lock too
	LockExclusive                     // no other rank holds a lock
)

// Assert is a set of promises about a synchronization call (MPI-4.1, Section 12.5.5).
type Assert uint8

// Promises for synchronization calls.
const (
	AssertNoCheck   Assert = 1 << iota // no other rank holds an excluding lock; targets have posted
	AssertNoStore                      // the caller has not changed its memory
	AssertNoPut                        // others will not change the caller's memory
	AssertNoPrecede                    // no operations to be completed
	AssertNoSucceed                    // no operations follow
)

// Promises that each call takes. Windows are coherent, so AssertNoStore and AssertNoPut save
// nothing.
const (
	AssertsFence = AssertNoStore | AssertNoPut | AssertNoPrecede | AssertNoSucceed
	AssertsPost  = AssertNoCheck | AssertNoStore | AssertNoPut
	AssertsStart = AssertNoCheck
	AssertsLock  = AssertNoCheck
)

// Check returns ErrOption if a is not among the promises that a call takes.
func (a Assert) Check(allowed Assert) error {
	if a&^allowed != 0 {
		return fmt.Errorf("%w: assert %#x in a call that takes %#x", mpierr.ErrOption, uint8(a), uint8(allowed))
	}
	return nil
}

// Hints say how a window is used.
type Hints struct {
	NoLocks   bool // it is never locked
	SameSize  bool // all ranks have memory of one length
	Unordered bool // an atomic may overtake updates before it
	Connect   bool // queue pairs to all ranks are connected when the window is made
}
