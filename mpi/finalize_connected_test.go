package mpi

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// Finalize waits for the processes of another job that are connected, in both
// directions, unless they have disconnected or its context ends.
func TestFinalizeWaitsForConnected(t *testing.T) {
	var left atomic.Int32 // of the clients
	const servers, clients = 2, 3
	side := func(accepts bool) func(context.Context, *World, string) error {
		return func(ctx context.Context, w *World, port string) error {
			var c *Comm
			var err error
			if accepts {
				c, err = w.Comm().Accept(ctx, port, 0)
			} else {
				c, err = w.Comm().Connect(ctx, port, 0, nil)
			}
			if err != nil {
				return err
			}
			d, err := c.Dup(ctx) // one more that needs the links
			if err != nil {
				return err
			}
			c.Free()
			if !accepts {
				// The servers are in Finalize by now, or will be; what they have
				// sent is there nevertheless.
				for r := range servers {
					var x [1]int
					if _, err := Recv(ctx, d, x[:], r, 0); err != nil || x[0] != 7 {
						return fmt.Errorf("%d from %d, %w", x[0], r, err)
					}
				}
				if err := Barrier(ctx, w.Comm()); err != nil {
					return err
				}
				left.Add(1)
				return w.Finalize(ctx)
			}
			for r := range clients {
				if err := Send(ctx, d, []int{7}, r, 0); err != nil {
					return err
				}
			}
			if err := w.Finalize(ctx); err != nil {
				return err
			}
			if n := left.Load(); n != clients {
				return fmt.Errorf("finalized when %d clients had called it", n)
			}
			return nil
		}
	}
	twoJobs(t, servers, clients, func(ctx context.Context, w *World, port string) error {
		if w.Rank() == 0 {
			left.Store(0)
		}
		return side(true)(ctx, w, port)
	}, side(false))
}

// A process that others wait for may be gone, or stay; the context ends the wait.
func TestFinalizeGivesUp(t *testing.T) {
	held := make(chan struct{})
	twoJobs(t, 1, 1, func(ctx context.Context, w *World, port string) error {
		if _, err := w.Comm().Accept(ctx, port, 0); err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_ = w.Finalize(short) // may tell that the link was not closed as it should be
		held <- struct{}{}
		return nil
	}, func(ctx context.Context, w *World, port string) error {
		if _, err := w.Comm().Connect(ctx, port, 0, nil); err != nil {
			return err
		}
		select {
		case <-held:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
