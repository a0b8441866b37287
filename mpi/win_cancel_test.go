package mpi

import (
	"context"
	"errors"
	"fmt"
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
