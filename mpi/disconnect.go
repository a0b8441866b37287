package mpi

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Disconnect waits until all communication on c is complete, including requests, and frees c
// (MPI-4.1, Section 11.10.4). All ranks of c must call it, those of both groups of an
// intercommunicator; it blocks until all have. Links to processes of other jobs with which the
// caller shares no other communicator are closed: their later failures do not affect it. They can
// connect again. If ctx ends first, c stays as it is.
func (c *Comm) Disconnect(ctx context.Context) error {
	t := c.enter()
	err := c.disconnect(ctx)
	c.leave(t, "Comm.Disconnect", NoPeer, 0, 0, err)
	return c.raise(err)
}

func (c *Comm) disconnect(ctx context.Context) error {
	if c == c.w.world || c == c.w.self {
		return fmt.Errorf("%w: Disconnect of the world", ErrComm)
	}
	if err := c.comm.Usable(); err != nil {
		return err
	}
	if err := c.quiet(ctx); err != nil {
		return err
	}
	// No member may close a link while another one has yet to hear from it.
	if c.remote == nil {
		if err := c.barrier(ctx); err != nil {
			return err
		}
	} else {
		if err := c.local.barrier(ctx); err != nil {
			return err
		}
		if _, _, err := c.leaders().exchange(ctx, nil); err != nil {
			return err
		}
		if err := c.local.barrier(ctx); err != nil {
			return err
		}
	}
	peers := c.comm.Peers
	if c.local != nil {
		peers = slices.Concat(peers, c.local.comm.Peers)
	}
	c.Free()
	c.w.job.DisconnectRemotes(ctx, peers)
	return nil
}

// quiet waits until no operation on c is in progress.
func (c *Comm) quiet(ctx context.Context) error {
	for c.comm.Busy() {
		select {
		case <-time.After(p2p.QuietPoll):
		case <-ctx.Done():
			return ctx.Err()
		case <-c.w.eng.Over:
			return c.w.usable()
		}
	}
	return nil
}
