package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// sentTo returns how many messages of windows a rank has sent so far.
func sentTo(c *Comm) (n uint64) {
	for _, p := range c.World().Stats().Peers {
		n += p.OneSided.Messages
	}
	return n
}

// TestWinNoCheck synchronizes with promises, which must save the messages.
func TestWinNoCheck(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int64](ctx, c, 4)
		if err != nil {
			return err
		}
		me, peer := c.Rank(), 1-c.Rank()
		if err := w.Fence(ctx); err != nil {
			return err
		}
		before := sentTo(c)
		if err := errors.Join(w.Lock(ctx, LockExclusive, peer, AssertNoCheck), w.Unlock(ctx, peer),
			w.LockAll(ctx, AssertNoCheck), w.UnlockAll(ctx)); err != nil {
			return err
		}
		if n := sentTo(c) - before; n != 0 {
			return fmt.Errorf("%d messages for locks with AssertNoCheck", n)
		}
		if err := Barrier(ctx, c); err != nil { // what follows has the peer answer
			return err
		}
		if err := w.Lock(ctx, LockExclusive, peer, AssertNoCheck); err != nil {
			return err
		}
		if err := w.Lock(ctx, LockShared, peer); !errors.Is(err, ErrEpoch) {
			return fmt.Errorf("second lock: %w", err)
		}
		if err := errors.Join(w.Put(ctx, []int64{int64(me) + 7}, peer, 0), w.Unlock(ctx, peer)); err != nil {
			return err
		}
		// A real lock still works, and excludes the other.
		if err := errors.Join(w.Lock(ctx, LockExclusive, peer), w.Unlock(ctx, peer), Barrier(ctx, c)); err != nil {
			return err
		}
		w.Sync()
		if w.Buf()[0] != int64(peer)+7 {
			return fmt.Errorf("%d after the locks", w.Buf()[0])
		}
		before = sentTo(c)
		if err := w.PostAssert(AssertNoCheck|AssertNoStore, peer); err != nil {
			return err
		}
		if n := sentTo(c) - before; n != 0 {
			return fmt.Errorf("%d messages for Post with AssertNoCheck", n)
		}
		if err := Barrier(ctx, c); err != nil { // all have called Post
			return err
		}
		if err := errors.Join(w.StartAssert(ctx, AssertNoCheck, peer), w.Put(ctx, []int64{int64(me) + 9}, peer, 1),
			w.Complete(ctx), w.Wait(ctx)); err != nil {
			return err
		}
		if w.Buf()[1] != int64(peer)+9 {
			return fmt.Errorf("%d after Wait", w.Buf()[1])
		}
		return w.Free(ctx)
	})
}

// TestWinFenceAsserts fences with promises that are kept, and with some that
// are not.
func TestWinFenceAsserts(t *testing.T) {
	eachTransport(t, 3, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, 8)
		if err != nil {
			return err
		}
		me := c.Rank()
		next := (me + 1) % 3
		for round := range 5 {
			if err := w.Fence(ctx, AssertNoPrecede|AssertNoPut); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if err := w.Put(ctx, []int32{int32(10*round + me)}, next, round); err != nil {
				return err
			}
			if err := w.Fence(ctx, AssertNoStore, AssertNoSucceed); err != nil {
				return err
			}
			if got, want := w.Buf()[round], int32(10*round+(me+2)%3); got != want {
				return fmt.Errorf("round %d: %d, want %d", round, got, want)
			}
		}
		// One that neither ends nor begins anything waits for nobody.
		if me == 0 {
			if err := w.Fence(ctx, AssertNoPrecede|AssertNoSucceed); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		// The promise is broken: the operation is complete all the same.
		if err := w.Put(ctx, []int32{99}, next, 7); err != nil {
			return err
		}
		if err := w.Fence(ctx, AssertNoPrecede); !errors.Is(err, ErrEpoch) {
			return fmt.Errorf("a Put before a Fence with AssertNoPrecede: %w", err)
		}
		if w.Buf()[7] != 99 {
			return fmt.Errorf("%d after the Fence", w.Buf()[7])
		}
		for name, err := range map[string]error{
			"fence": w.Fence(ctx, AssertNoCheck), "lock": w.Lock(ctx, LockShared, 0, AssertNoPut),
			"lock all": w.LockAll(ctx, AssertNoSucceed), "post": w.PostAssert(AssertNoPrecede, 0),
			"start": w.StartAssert(ctx, AssertNoStore, 0),
		} {
			if !errors.Is(err, ErrOption) {
				return fmt.Errorf("%s with a promise that makes no sense: %w", name, err)
			}
		}
		return w.Free(ctx)
	})
}

// TestWinSharedFenceOrders has all ranks write to the memory of the next one
// between fences that complete no operations: they must wait for one another.
func TestWinSharedFenceOrders(t *testing.T) {
	const p = 4
	local(t, p, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocateShared[int](ctx, c, 1)
		if err != nil {
			return err
		}
		next, err := w.SharedQuery((c.Rank() + 1) % p)
		if err != nil {
			return err
		}
		for round := range 50 {
			next[0] = round
			if err := w.Fence(ctx, AssertNoPrecede|AssertNoSucceed); err != nil {
				return err
			}
			if w.Buf()[0] != round {
				return fmt.Errorf("round %d: %d", round, w.Buf()[0])
			}
			if err := w.Fence(ctx, AssertNoPrecede|AssertNoSucceed); err != nil {
				return err
			}
		}
		return w.Free(ctx)
	})
}

// TestUpdatesKeepTheirOrder starts updates of a whole window, and then reads and
// swaps its last element, which must come after them (MPI-4.1, Section 12.7.2).
func TestUpdatesKeepTheirOrder(t *testing.T) {
	const n = 1 << 13
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int64](ctx, c, n)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			ones := make([]int64, n)
			for i := range ones {
				ones[i] = 1
			}
			want := int64(0)
			for round := range 20 {
				if err := w.Accumulate(ctx, ones, 1, 0, Sum); err != nil {
					return err
				}
				want++
				if round%2 == 0 {
					got, err := w.FetchAndOp(ctx, 5, 1, n-1, Sum)
					if err != nil || got != want {
						return fmt.Errorf("round %d: fetched %d, want %d: %w", round, got, want, err)
					}
					want += 5
				}
				got, err := w.CompareAndSwap(ctx, want, want+3, 1, n-1)
				if err != nil || got != want {
					return fmt.Errorf("round %d: swapped %d, want %d: %w", round, got, want, err)
				}
				want += 3
				if round%5 == 4 {
					if err := w.Flush(ctx, 1); err != nil {
						return err
					}
				}
			}
			// Nothing is on its way: RDMA, if there is any, does it again.
			if err := w.Flush(ctx, 1); err != nil {
				return err
			}
			before := sentTo(c)
			if got, err := w.FetchAndOp(ctx, 0, 1, n-1, NoOp); err != nil || got != want {
				return fmt.Errorf("at last %d, want %d: %w", got, want, err)
			}
			if n := sentTo(c) - before; w.RDMA() && n != 0 {
				return fmt.Errorf("%d messages for an RDMA atomic", n)
			}
			// Without order it does so at once.
			if err := w.SetInfo(Info{InfoAccumulateOrdering: "none"}); err != nil {
				return err
			}
			if err := w.Accumulate(ctx, ones, 1, 0, Sum); err != nil {
				return err
			}
			before = sentTo(c)
			if got, err := w.FetchAndOp(ctx, 0, 1, n-1, NoOp); err != nil || got < want || got > want+1 {
				return fmt.Errorf("at last %d, want %d or one more: %w", got, want, err)
			}
			if n := sentTo(c) - before; w.RDMA() && n != 0 {
				return fmt.Errorf("%d messages for an RDMA atomic without order", n)
			}
		}
		return w.Free(ctx)
	})
}

// BenchmarkWinLock is a Put in an epoch of its own, with and without a promise.
func BenchmarkWinLock(b *testing.B) {
	for _, tr := range []string{TransportHybrid, TransportSCTP} {
		for name, a := range map[string]Assert{"none": 0, "nocheck": AssertNoCheck} {
			b.Run("transport="+tr+"/assert="+name, func(b *testing.B) {
				ctx, cancel := context.WithTimeout(context.Background(), testTime)
				defer cancel()
				err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
					c := w.Comm()
					win, err := WinAllocate[int64](ctx, c, 1)
					if err != nil {
						return err
					}
					if c.Rank() == 0 {
						src := []int64{1}
						for b.Loop() {
							if err := errors.Join(win.Lock(ctx, LockExclusive, 1, a), win.Put(ctx, src, 1, 0), win.Unlock(ctx, 1)); err != nil {
								return err
							}
						}
					}
					return win.Free(ctx)
				}, WithTransport(tr))
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// TestFenceAfterUnlock promises that nothing precedes a fence, after an epoch of its own: its operations are complete,
// and releasing the lock is none.
func TestFenceAfterUnlock(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, 4)
		if err != nil {
			return err
		}
		for range 20 {
			if err := errors.Join(
				w.Lock(ctx, LockExclusive, 1-c.Rank()),
				w.Accumulate(ctx, []int32{1}, 1-c.Rank(), 0, Sum),
				w.Unlock(ctx, 1-c.Rank()),
				w.Fence(ctx, AssertNoPrecede),
			); err != nil {
				return err
			}
		}
		if w.Buf()[0] != 20 {
			return fmt.Errorf("%d updates", w.Buf()[0])
		}
		return w.Free(ctx)
	})
}

// TestWinNoPrecedeOfOthers promises that there are no operations on a window while there are some on another one,
// which may share its connection.
func TestWinNoPrecedeOfOthers(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		busy, err := WinAllocate[byte](ctx, c, 1<<16)
		if err != nil {
			return err
		}
		quiet, err := WinAllocate[byte](ctx, c, 1<<16)
		if err != nil {
			return err
		}
		peer := 1 - c.Rank()
		big := make([]byte, 1<<16)
		for range 10 {
			err := errors.Join(quiet.Put(ctx, big, peer, 0), busy.Put(ctx, big, peer, 0), quiet.Flush(ctx, peer),
				busy.Put(ctx, big, peer, 0), quiet.Fence(ctx, AssertNoPrecede))
			if err != nil {
				return err
			}
			if err := quiet.Put(ctx, big[:1], peer, 0); err != nil {
				return err
			}
			if err := quiet.Fence(ctx, AssertNoPrecede); !errors.Is(err, ErrEpoch) {
				return fmt.Errorf("a fence that promises too much: %w", err)
			}
		}
		return errors.Join(busy.Free(ctx), quiet.Free(ctx))
	})
}
