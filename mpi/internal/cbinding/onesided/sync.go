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

// WinFence is MPI_Win_fence.
func WinFence(assert int, win abi.Handle) int {
	const proc = "MPI_Win_fence"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	a, err := assertOf(assert, abi.ModeNostore|abi.ModeNoput|abi.ModeNoprecede|abi.ModeNosucceed)
	if err == nil {
		err = w.epoch.fence()
	}
	if err != nil {
		return w.Done(proc, err)
	}
	err = w.Fence(cbinding.Background, a)
	if a&mpi.AssertNoSucceed != 0 {
		w.epoch.set(noAccess)
	} else {
		w.epoch.set(fenced)
	}
	return w.Done(proc, err)
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
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	ranks, err := w.members(group)
	var a mpi.Assert
	if err == nil {
		a, err = assertOf(assert, abi.ModeNocheck|abi.ModeNostore|abi.ModeNoput)
	}
	if err == nil {
		err = w.epoch.post(proc, true)
	}
	if err == nil {
		if err = w.PostAssert(a, ranks...); err == nil {
			w.epoch.setPosted(true)
		}
	}
	return w.Done(proc, err)
}

// WinStart is MPI_Win_start.
func WinStart(group abi.Handle, assert int, win abi.Handle) int {
	const proc = "MPI_Win_start"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	ranks, err := w.members(group)
	var a mpi.Assert
	if err == nil {
		a, err = assertOf(assert, abi.ModeNocheck)
	}
	targets := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		targets[r] = true
	}
	if err == nil {
		err = w.epoch.begin(proc, startedOn, targets)
	}
	if err == nil {
		if err = w.StartAssert(cbinding.Background, a, ranks...); err != nil {
			w.epoch.set(noAccess)
		}
	}
	return w.Done(proc, err)
}

// WinComplete is MPI_Win_complete.
func WinComplete(win abi.Handle) int {
	const proc = "MPI_Win_complete"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err = w.epoch.end(proc, startedOn); err == nil {
		err = w.Complete(cbinding.Background)
		w.epoch.set(noAccess)
	}
	return w.Done(proc, err)
}

// WinWait is MPI_Win_wait.
func WinWait(win abi.Handle) int {
	const proc = "MPI_Win_wait"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err = w.epoch.post(proc, false); err == nil {
		if err = w.Wait(cbinding.Background); err == nil {
			w.epoch.setPosted(false)
		}
	}
	return w.Done(proc, err)
}

// WinTest is MPI_Win_test.
func WinTest(win abi.Handle, flag uintptr) int {
	const proc = "MPI_Win_test"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err = cbinding.Out("flag", flag); err == nil {
		err = w.epoch.post(proc, false)
	}
	if err == nil {
		var done bool
		if done, err = w.Test(); err == nil {
			if done {
				w.epoch.setPosted(false)
			}
			err = cbinding.SetFlag(flag, done)
		}
	}
	return w.Done(proc, err)
}

// WinLock is MPI_Win_lock.
func WinLock(lockType, rank, assert int, win abi.Handle) int {
	const proc = "MPI_Win_lock"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	target, err := w.target("rank", rank)
	mode := mpi.LockShared
	switch {
	case err != nil:
	case lockType == abi.LockExclusive:
		mode = mpi.LockExclusive
	case lockType != abi.LockShared:
		err = cbinding.ArgError(abi.ErrLocktype, "lock_type", lockType, "is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE")
	}
	var a mpi.Assert
	if err == nil {
		a, err = assertOf(assert, abi.ModeNocheck)
	}
	if err == nil {
		err = w.epoch.lock(rank)
	}
	if err == nil && target != mpi.ProcNull {
		if err = w.Lock(cbinding.Background, mode, target, a); err != nil {
			w.epoch.unlock(rank)
		}
	}
	return w.Done(proc, err)
}

// WinUnlock is MPI_Win_unlock.
func WinUnlock(rank int, win abi.Handle) int {
	const proc = "MPI_Win_unlock"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	target, err := w.target("rank", rank)
	if err == nil {
		err = w.epoch.locked(rank)
	}
	if err == nil {
		if target != mpi.ProcNull {
			err = w.Unlock(cbinding.Background, target)
		}
		w.epoch.unlock(rank)
	}
	return w.Done(proc, err)
}

// WinLockAll is MPI_Win_lock_all.
func WinLockAll(assert int, win abi.Handle) int {
	const proc = "MPI_Win_lock_all"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	a, err := assertOf(assert, abi.ModeNocheck)
	if err == nil {
		err = w.epoch.begin(proc, lockedAll, nil)
	}
	if err == nil {
		if err = w.LockAll(cbinding.Background, a); err != nil {
			w.epoch.set(noAccess)
		}
	}
	return w.Done(proc, err)
}

// WinUnlockAll is MPI_Win_unlock_all.
func WinUnlockAll(win abi.Handle) int {
	const proc = "MPI_Win_unlock_all"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err = w.epoch.end(proc, lockedAll); err == nil {
		err = w.UnlockAll(cbinding.Background)
		w.epoch.set(noAccess)
	}
	return w.Done(proc, err)
}

// flush completes operations on a target in a passive epoch.
func flush(proc string, rank int, win abi.Handle, f func(w *mpi.Window, target int) error) int {
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	target, err := w.target("rank", rank)
	if err == nil {
		err = w.epoch.passive(proc, rank)
	}
	if err == nil && target != mpi.ProcNull {
		err = f(w.Window, target)
	}
	return w.Done(proc, err)
}

// flushAll completes operations on all targets in a passive epoch.
func flushAll(proc string, win abi.Handle, f func(w *mpi.Window) error) int {
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err = w.epoch.passiveAny(proc); err == nil {
		err = f(w.Window)
	}
	return w.Done(proc, err)
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
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail("MPI_Win_sync", err)
	}
	w.Sync()
	return 0
}
