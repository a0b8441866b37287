package mpi

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// overNetwork runs ranks over an emulated network in virtual time, with RDMA.
func overNetwork(t *testing.T, n int, link sctptest.Link, f func(ctx context.Context, w *World) error, opts ...Option) {
	t.Helper()
	seed := testSeed(t)
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(seed)
		defer net.Close()
		net.SetDefault(link)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := RunLocal(ctx, n, f, append(opts, WithTransport(TransportHybrid), WithSpin(0),
			WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
				addr := fmt.Sprintf("10.0.0.%d", rank+1)
				pc, err := net.NewHost(addr).ListenPacket(addr + ":9899")
				return []sctp.PacketConn{pc}, err
			}))...)
		if err != nil {
			t.Error(err)
		}
	})
}

// When Free returns, nothing of the memory of a window is to be sent again: the program may unmap it.
func TestWinFreeDrains(t *testing.T) {
	overNetwork(t, 2, sctptest.Link{Delay: time.Millisecond, Loss: 0.1}, func(ctx context.Context, w *World) error {
		c, b := w.Comm(), make([]byte, 50_000)
		for i := range 100 {
			win, err := WinCreate(ctx, c, make([]byte, len(b)))
			if err != nil {
				return err
			}
			if err := win.LockAll(ctx); err != nil {
				return err
			}
			if c.Rank() == 1 {
				if err := win.Get(ctx, b, 0, 0); err != nil {
					return err
				}
			}
			if err := win.UnlockAll(ctx); err != nil {
				return err
			}
			region := win.w.rma.Region()
			if err := win.Free(ctx); err != nil {
				return err
			}
			drained := false
			region.AfterDrain(func() { drained = true })
			if !drained {
				return fmt.Errorf("window %d is freed, and its memory still referred to", i)
			}
		}
		return nil
	})
}

// When synchronization fails because the target has, no operation uses the buffers of the program any more.
func TestWinBuffersOfTheDead(t *testing.T) {
	var done atomic.Bool
	overNetwork(t, 2, sctptest.Link{Delay: time.Millisecond, Rate: 1e6}, func(ctx context.Context, w *World) error {
		c := w.Comm()
		win, err := WinAllocate[byte](ctx, c, 1<<20)
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			if _, err := Recv(ctx, c, make([]byte, 1), 0, 0); err != nil {
				return err
			}
			for _, p := range w.eng.Peers { // dies without a word to the launcher
				if p.Link != nil {
					p.Link.Abort("test")
				}
			}
			for !done.Load() {
				time.Sleep(time.Millisecond)
			}
			return nil
		}
		defer done.Store(true)
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		if err := win.Put(ctx, make([]byte, 1<<20), 1, 0); err != nil {
			return err
		}
		if err := Send(ctx, c, make([]byte, 1), 1, 0); err != nil {
			return err
		}
		for w.eng.Peers[1].Failure() == nil {
			time.Sleep(time.Millisecond)
		}
		if err := win.FlushAll(ctx); err == nil {
			return fmt.Errorf("1 MiB at 1 Mb/s was put at once")
		}
		if n := win.w.rma.Device().Busy(); n > 0 {
			return fmt.Errorf("%d queue pairs use memory after a Flush that failed", n)
		}
		return nil
	}, WithFaultTolerance())
}

// An RDMA atomic that the caller has given up is complete after the next synchronization, as others are.
func TestAtomicGivenUpIsFlushed(t *testing.T) {
	overNetwork(t, 2, sctptest.Link{Delay: 5 * time.Millisecond, Loss: 0.2}, func(ctx context.Context, w *World) error {
		c := w.Comm()
		win, err := WinAllocate[int64](ctx, c, 1)
		if err != nil {
			return err
		}
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		given := 0
		for i := range 60 {
			if c.Rank() == 0 {
				short, cancel := context.WithTimeout(ctx, time.Duration(1+i%20)*time.Millisecond)
				if _, err := win.FetchAndOp(short, 1, 1, 0, Sum); err != nil {
					given++
				}
				cancel()
				if err := win.Flush(ctx, 1); err != nil {
					return err
				}
			}
			if err := c.barrier(ctx); err != nil {
				return err
			}
			win.Sync()
			before := win.Buf()[0]
			if c.Rank() == 1 {
				time.Sleep(time.Second)
				win.Sync()
				if now := win.Buf()[0]; now != before {
					return fmt.Errorf("round %d: %d after the Flush, %d a second later", i, before, now)
				}
			}
			if err := c.barrier(ctx); err != nil {
				return err
			}
		}
		if c.Rank() == 0 && (given == 0 || given == 60) {
			return fmt.Errorf("%d of 60 atomics were given up", given)
		}
		if err := win.UnlockAll(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
}

// An update in a message does not overtake an RDMA atomic that was given up (MPI-4.1, Section 12.7.2).
func TestUpdateFollowsAtomicGivenUp(t *testing.T) {
	overNetwork(t, 2, sctptest.Link{Delay: 5 * time.Millisecond, Loss: 0.2}, func(ctx context.Context, w *World) error {
		c := w.Comm()
		win, err := WinAllocate[int64](ctx, c, 1)
		if err != nil {
			return err
		}
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		value, given := int64(1), 0
		if c.Rank() == 0 {
			if _, err := win.FetchAndOp(ctx, value, 1, 0, Sum); err != nil { // connects
				return err
			}
		}
		for i := 0; i < 60 && c.Rank() == 0; i++ {
			short, cancel := context.WithTimeout(ctx, time.Duration(1+i%20)*time.Millisecond)
			if _, err := win.FetchAndOp(short, 1, 1, 0, Sum); err != nil {
				given++
			}
			cancel()
			value++
			if i%2 == 0 {
				var old int64
				if err := win.CompareAndSwapTo(ctx, value, value+100, &old, 1, 0); err != nil {
					return err
				}
				if err := win.Flush(ctx, 1); err != nil {
					return err
				}
				if old != value {
					return fmt.Errorf("round %d: compared with %d, was %d", i, value, old)
				}
				value += 100
			} else {
				if err := win.Accumulate(ctx, []int64{-value}, 1, 0, Max); err != nil { // changes nothing
					return err
				}
				old, err := win.FetchAndOp(ctx, 0, 1, 0, NoOp)
				if err != nil || old != value {
					return fmt.Errorf("round %d: %d, want %d: %w", i, old, value, err)
				}
			}
		}
		if c.Rank() == 0 && (given == 0 || given == 60) {
			return fmt.Errorf("%d of 60 atomics were given up", given)
		}
		if err := win.UnlockAll(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
}
