package mpi

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// MaxConnected bounds the processes of other jobs that a rank is connected
// to at a time.
const MaxConnected = p2p.MaxRemotes

// connectGroups makes an intercommunicator of c and the group at the other end of the connection
// that open makes. It calls open at the root only.
func (c *Comm) connectGroups(
	ctx context.Context, root int, accepts bool, open func(context.Context) (*dynamic.RootConn, error),
) (d *Comm, err error) {
	defer func() { c.w.recordConnected(d, err) }()
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	if c.remote != nil {
		return nil, fmt.Errorf("%w: connecting an intercommunicator", ErrComm)
	}
	bad := c.comm.CheckPeer(p2p.SlotComm, root)
	if bad != nil {
		bad = fmt.Errorf("%w: %w", ErrRoot, bad)
	}
	if err := c.consent(ctx, bad, root); err != nil {
		return nil, err
	}
	side := 0
	if !accepts {
		side = 1
	}
	err = c.w.job.ConnectGroups(ctx, exchangeComm{c}, root, accepts, open, func(id uint64, others []int32) {
		d = c.child(c.w.newIntercomm(id, c.group, c.comm.Rank, others, side, c.Info()))
	})
	return d, err
}

// recordConnected logs the outcome of an intercommunicator handshake.
func (w *World) recordConnected(c *Comm, err error) {
	if err != nil {
		w.job.Record(slog.LevelWarn, "connecting to a group failed", job.Cause(err))
		return
	}
	w.job.Record(slog.LevelInfo, "group connected", slog.Int("processes", c.RemoteSize()))
}
