package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weftstack/weft/mpi"
)

// runTolerant is run for a farm that ranks may be taken from: those left go on
// with the tasks that are not done.
func runTolerant(ctx context.Context, w *mpi.World, o *options) error {
	c, m, err := tolerate(ctx, w.Comm(), o, func(c *mpi.Comm, err error) {
		fmt.Fprintf(os.Stderr, "farm: rank %d: %v; continuing with %d ranks\n", w.Rank(), err, c.Size())
	})
	if err != nil {
		w.Abort(1, err.Error())
		return err
	}
	if m == nil {
		return w.Finalize(ctx)
	}
	defer m.src.Close()
	res, err := m.finish(c)
	if err != nil {
		w.Abort(1, err.Error())
		return err
	}
	return conclude(ctx, w, o, res)
}

// tolerate does all tasks. When a rank dies, who notices revokes the
// communicator, so that all stop; together they make a smaller one and begin
// anew with the tasks whose results rank 0 does not have. If it is rank 0 that
// died, the next one begins from the start. lost is told why there is a new
// communicator. It returns the last one, and at its rank 0 the manager.
func tolerate(
	ctx context.Context, c *mpi.Comm, o *options, lost func(c *mpi.Comm, err error),
) (*mpi.Comm, *manager, error) {
	var m *manager
	for {
		var err error
		if c.Rank() == 0 && m == nil {
			if m, err = newManager(o); err != nil {
				return c, nil, err
			}
		}
		if m != nil {
			err = m.farm(ctx, c)
		} else {
			err = work(ctx, c, o)
		}
		fine := uint64(1)
		if err != nil {
			if !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrRevoked) {
				return c, nil, err
			}
			fine = 0
			if err := c.Revoke(); err != nil {
				return c, nil, err
			}
		}
		// A worker may be done when another one dies: all must know.
		all, aerr := c.Agree(ctx, fine)
		if aerr == nil && all == 1 {
			return c, m, nil
		}
		if aerr != nil && !errors.Is(aerr, mpi.ErrProcFailed) {
			return c, nil, aerr
		}
		if err == nil {
			err = errors.Join(aerr, c.Revoke())
		}
		smaller, serr := c.Shrink(ctx)
		if serr != nil {
			return c, nil, serr
		}
		lost(smaller, err)
		c = smaller
	}
}
