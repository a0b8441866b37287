package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestIntercommCreateConnects lets one rank start processes, and all ranks of both jobs make an
// intercommunicator: the others have no links to each other before.
func TestIntercommCreateConnects(t *testing.T) {
	const parents, children = 3, 2
	both := func(ctx context.Context, w *World, bridge *Comm, child bool) error {
		c, err := IntercommCreate(ctx, w.Comm(), 0, bridge, 0, 7)
		if err != nil {
			return err
		}
		if err := mingle(ctx, c, child, parents+children); err != nil {
			return err
		}
		// With the links there is nothing to connect.
		d, err := IntercommCreate(ctx, w.Comm(), 0, bridge, 0, 7)
		if err != nil {
			return err
		}
		if err := d.Disconnect(ctx); err != nil {
			return err
		}
		return c.Disconnect(ctx)
	}
	started := func(ctx context.Context, w *World, _ []string) error {
		p := w.Parent()
		if p == nil || p.RemoteSize() != 1 {
			return fmt.Errorf("parent %v, want one process", p)
		}
		return errors.Join(both(ctx, w, p, true), p.Disconnect(ctx))
	}
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			err := RunLocal(ctx, parents, func(ctx context.Context, w *World) error {
				if w.Rank() != 0 {
					return both(ctx, w, nil, false)
				}
				c, err := w.Self().Spawn(ctx, Command{Path: "two", N: children}, 0)
				if err != nil {
					return err
				}
				if c.RemoteSize() != children {
					return fmt.Errorf("%d processes, want %d", c.RemoteSize(), children)
				}
				return errors.Join(both(ctx, w, c, false), c.Disconnect(ctx))
			}, overTransport(tr), WithProgram("two", started))
			if err != nil {
				t.Error(err)
			}
		})
	}
}
