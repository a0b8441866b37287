package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
)

// TestFetchCancelled gives up atomics whose answers are on their way: what comes then may
// not be what they return, nor be stored while they do.
func TestFetchCancelled(t *testing.T) {
	for _, tr := range []string{TransportTCP, TransportSCTP, TransportHybrid} {
		t.Run(tr, func(t *testing.T) {
			const tries = 300
			err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
				win, err := WinAllocate[int64](ctx, w.Comm(), 1)
				if err != nil {
					return err
				}
				win.Buf()[0] = 1000
				if err := win.LockAll(ctx); err != nil {
					return err
				}
				if err := Barrier(ctx, w.Comm()); err != nil {
					return err
				}
				if w.Rank() == 0 {
					if _, err := win.FetchAndOp(ctx, 0, 1, 0, Sum); err != nil { // connects
						return err
					}
					for i := range tries {
						short, stop := context.WithCancel(ctx)
						go stop()
						old, err := win.FetchAndOp(short, 0, 1, 0, Sum)
						if i%2 == 1 {
							old, err = win.CompareAndSwap(short, 0, 0, 1, 0)
						}
						stop()
						switch {
						case err == nil && old == 1000, errors.Is(err, context.Canceled) && old == 0:
						default:
							return fmt.Errorf("try %d: %d, %w", i, old, err)
						}
					}
				}
				// An operation that was not sent is an error of the epoch, too.
				if err := win.UnlockAll(ctx); err != nil && !errors.Is(err, context.Canceled) {
					return err
				}
				return win.Free(ctx)
			}, WithTransport(tr))
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Two goroutines wait for the same queue pair, and the one that began to connect it
// gives up: the other one gets it.
func TestWinConnectionGivenUp(t *testing.T) {
	local(t, 4, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, 100)
		if err != nil {
			return err
		}
		d, err := c.w.job.Device()
		if err != nil {
			return err
		}
		for target := range c.Size() {
			if target == c.Rank() {
				continue
			}
			before := d.Connections()
			short, giveUp := context.WithCancel(ctx)
			first := make(chan error)
			go func() {
				first <- w.w.rma.Connect(short, target)
			}()
			for d.Connections() == before && ctx.Err() == nil {
				runtime.Gosched()
			}
			giveUp()
			err := w.w.rma.Connect(ctx, target)
			if e := <-first; e != nil && !errors.Is(e, context.Canceled) {
				return fmt.Errorf("connection that was given up: %w", e)
			}
			if err != nil {
				return fmt.Errorf("connection that another one gave up: %w", err)
			}
		}
		return w.Free(ctx)
	}, WithTransport(TransportHybrid), WithSharedMemory(false))
}
