package onesided

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// winModes are the promises of the ABI, by those of package mpi.
var winModes = []struct {
	c    int
	flag mpi.Assert
}{{abi.ModeNocheck, mpi.AssertNoCheck}, {abi.ModeNostore, mpi.AssertNoStore}, {abi.ModeNoput, mpi.AssertNoPut},
	{abi.ModeNoprecede, mpi.AssertNoPrecede}, {abi.ModeNosucceed, mpi.AssertNoSucceed}}

// assertOf translates promises, of which a call takes the allowed ones (MPI-4.1, Section 12.5.5).
func assertOf(assert, allowed int) (a mpi.Assert, err error) {
	if assert&^allowed != 0 {
		return 0, cbinding.ArgError(abi.ErrAssert, "assert", assert, fmt.Sprintf("is none of the promises that add up to %d", allowed))
	}
	for _, m := range winModes {
		if assert&m.c != 0 {
			a |= m.flag
		}
	}
	return a, nil
}

// onWindow makes a call on a window: it looks the handle up, and gives the error of f to the window's error handler.
func onWindow(proc string, win abi.Handle, f func(w *window) error) int {
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return w.Done(proc, f(w))
}

// WinFence is MPI_Win_fence.
func WinFence(assert int, win abi.Handle) int {
	return onWindow("MPI_Win_fence", win, func(w *window) error {
		a, err := assertOf(assert, abi.ModeNostore|abi.ModeNoput|abi.ModeNoprecede|abi.ModeNosucceed)
		if err == nil {
			err = w.epoch.fence()
		}
		if err != nil {
			return err
		}
		err = w.Fence(cbinding.Background, a)
		if a&mpi.AssertNoSucceed != 0 {
			w.epoch.set(noAccess)
		} else {
			w.epoch.set(fenced)
		}
		return err
	})
}

// members returns the ranks of a group in the window.
func (w *window) members(h abi.Handle) ([]int, error) {
	g, err := cbinding.GroupOf(h)
	if err != nil {
		return nil, err
	}
	all := make([]int, g.Size())
	for i := range all {
		all[i] = i
	}
	ranks := g.TranslateRanks(all, w.Group())
	for i, r := range ranks {
		if r < 0 {
			return nil, cbinding.ArgError(abi.ErrGroup, "group", fmt.Sprintf("%#x", uintptr(h)),
				fmt.Sprintf("has rank %d, which is not in the window", i))
		}
	}
	return ranks, nil
}

// WinPost is MPI_Win_post.
func WinPost(group abi.Handle, assert int, win abi.Handle) int {
	const proc = "MPI_Win_post"
	return onWindow(proc, win, func(w *window) error {
		ranks, err := w.members(group)
		if err != nil {
			return err
		}
		a, err := assertOf(assert, abi.ModeNocheck|abi.ModeNostore|abi.ModeNoput)
		if err != nil {
			return err
		}
		if err = w.epoch.post(proc, true); err != nil {
			return err
		}
		if err = w.PostAssert(a, ranks...); err == nil {
			w.epoch.setPosted(true)
		}
		return err
	})
}

// WinStart is MPI_Win_start.
func WinStart(group abi.Handle, assert int, win abi.Handle) int {
	const proc = "MPI_Win_start"
	return onWindow(proc, win, func(w *window) error {
		ranks, err := w.members(group)
		if err != nil {
			return err
		}
		a, err := assertOf(assert, abi.ModeNocheck)
		if err != nil {
			return err
		}
		targets := make(map[int]bool, len(ranks))
		for _, r := range ranks {
			targets[r] = true
		}
		return w.begin(proc, startedOn, targets, func() error { return w.StartAssert(cbinding.Background, a, ranks...) })
	})
}

// begin begins an access epoch by a call that waits: if that fails there is none.
func (w *window) begin(proc string, a accessEpoch, targets map[int]bool, wait func() error) error {
	err := w.epoch.begin(proc, a, targets)
	if err == nil {
		if err = wait(); err != nil {
			w.epoch.set(noAccess)
		}
	}
	return err
}

// end ends an access epoch by a call that waits: it ends in any case.
func (w *window) end(proc string, a accessEpoch, wait func() error) error {
	err := w.epoch.end(proc, a)
	if err == nil {
		err = wait()
		w.epoch.set(noAccess)
	}
	return err
}

// WinComplete is MPI_Win_complete.
func WinComplete(win abi.Handle) int {
	const proc = "MPI_Win_complete"
	return onWindow(proc, win, func(w *window) error {
		return w.end(proc, startedOn, func() error { return w.Complete(cbinding.Background) })
	})
}

// exposed ends the exposure if wait says that it has ended, perhaps with an error: origins may have failed.
func (w *window) exposed(proc string, wait func() (bool, error)) (done bool, err error) {
	if err = w.epoch.post(proc, false); err != nil {
		return false, err
	}
	if done, err = wait(); done {
		w.epoch.setPosted(false)
	}
	return done, err
}

// WinWait is MPI_Win_wait.
func WinWait(win abi.Handle) int {
	const proc = "MPI_Win_wait"
	return onWindow(proc, win, func(w *window) error {
		_, err := w.exposed(proc, func() (bool, error) { return true, w.Wait(cbinding.Background) })
		return err
	})
}

// WinTest is MPI_Win_test.
func WinTest(win abi.Handle, flag uintptr) int {
	const proc = "MPI_Win_test"
	return onWindow(proc, win, func(w *window) error {
		if err := cbinding.Out("flag", flag); err != nil {
			return err
		}
		done, err := w.exposed(proc, w.Test)
		if err == nil {
			err = cbinding.SetFlag(flag, done)
		}
		return err
	})
}

// lockMode translates the type of a lock.
func lockMode(lockType int) (mpi.LockMode, error) {
	switch lockType {
	case abi.LockExclusive:
		return mpi.LockExclusive, nil
	case abi.LockShared:
		return mpi.LockShared, nil
	}
	return 0, cbinding.ArgError(abi.ErrLocktype, "lock_type", lockType,
		"is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE")
}

// WinLock is MPI_Win_lock.
func WinLock(lockType, rank, assert int, win abi.Handle) int {
	return onWindow("MPI_Win_lock", win, func(w *window) error {
		target, err := w.target("rank", rank)
		if err != nil {
			return err
		}
		mode, err := lockMode(lockType)
		if err != nil {
			return err
		}
		a, err := assertOf(assert, abi.ModeNocheck)
		if err != nil {
			return err
		}
		if err = w.epoch.lock(rank); err != nil || target == mpi.ProcNull {
			return err
		}
		if err = w.Lock(cbinding.Background, mode, target, a); err != nil {
			w.epoch.unlock(rank)
		}
		return err
	})
}

// WinUnlock is MPI_Win_unlock.
func WinUnlock(rank int, win abi.Handle) int {
	return onWindow("MPI_Win_unlock", win, func(w *window) error {
		target, err := w.target("rank", rank)
		if err == nil {
			err = w.epoch.locked(rank)
		}
		if err != nil {
			return err
		}
		if target != mpi.ProcNull {
			err = w.Unlock(cbinding.Background, target)
		}
		w.epoch.unlock(rank)
		return err
	})
}

// WinLockAll is MPI_Win_lock_all.
func WinLockAll(assert int, win abi.Handle) int {
	const proc = "MPI_Win_lock_all"
	return onWindow(proc, win, func(w *window) error {
		a, err := assertOf(assert, abi.ModeNocheck)
		if err != nil {
			return err
		}
		return w.begin(proc, lockedAll, nil, func() error { return w.LockAll(cbinding.Background, a) })
	})
}

// WinUnlockAll is MPI_Win_unlock_all.
func WinUnlockAll(win abi.Handle) int {
	const proc = "MPI_Win_unlock_all"
	return onWindow(proc, win, func(w *window) error {
		return w.end(proc, lockedAll, func() error { return w.UnlockAll(cbinding.Background) })
	})
}

// flush completes operations on a target in a passive epoch.
func flush(proc string, rank int, win abi.Handle, f func(w *mpi.Window, target int) error) int {
	return onWindow(proc, win, func(w *window) error {
		target, err := w.target("rank", rank)
		if err == nil {
			err = w.epoch.passive(proc, rank)
		}
		if err == nil && target != mpi.ProcNull {
			err = f(w.Window, target)
		}
		return err
	})
}

// flushAll completes operations on all targets in a passive epoch.
func flushAll(proc string, win abi.Handle, f func(w *mpi.Window) error) int {
	return onWindow(proc, win, func(w *window) error {
		err := w.epoch.passiveAny(proc)
		if err == nil {
			err = f(w.Window)
		}
		return err
	})
}

// WinFlush is MPI_Win_flush.
func WinFlush(rank int, win abi.Handle) int {
	return flush("MPI_Win_flush", rank, win, func(w *mpi.Window, target int) error {
		return w.Flush(cbinding.Background, target)
	})
}

// WinFlushAll is MPI_Win_flush_all.
func WinFlushAll(win abi.Handle) int {
	return flushAll("MPI_Win_flush_all", win, func(w *mpi.Window) error { return w.FlushAll(cbinding.Background) })
}

// WinFlushLocal is MPI_Win_flush_local.
func WinFlushLocal(rank int, win abi.Handle) int {
	return flush("MPI_Win_flush_local", rank, win,
		func(w *mpi.Window, target int) error { return w.FlushLocal(cbinding.Background, target) })
}

// WinFlushLocalAll is MPI_Win_flush_local_all.
func WinFlushLocalAll(win abi.Handle) int {
	return flushAll("MPI_Win_flush_local_all", win, func(w *mpi.Window) error {
		return w.FlushLocalAll(cbinding.Background)
	})
}

// WinSync is MPI_Win_sync. Weft takes it outside of epochs, too.
func WinSync(win abi.Handle) int {
	return onWindow("MPI_Win_sync", win, func(w *window) error {
		w.Sync()
		return nil
	})
}
