package mpi

import (
	"context"
	"fmt"
	"net"

	"github.com/weftstack/weft/mpi/internal/dynamic"
)

// Join makes an intercommunicator of the two processes at the ends of conn, which both call it
// (MPI_Comm_join). Each group has one member. Nothing else may be sent over conn meanwhile;
// afterwards conn is the program's again. It blocks until the other process calls it, or ctx ends,
// which leaves conn in an undefined state. It returns ErrProtocol if the other end does not join,
// and ErrRank if both ends are the same connection.
func (w *World) Join(ctx context.Context, conn net.Conn) (*Comm, error) {
	c := w.self
	t := c.enter()
	d, err := w.join2(ctx, conn)
	c.leave(t, "World.Join", NoPeer, 0, 0, err)
	return d, c.raise(err)
}

func (w *World) join2(ctx context.Context, conn net.Conn) (*Comm, error) {
	if err := w.job.Transport.Listen(); err != nil {
		return nil, err
	}
	accepts, err := dynamic.Join(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("mpi: joining: %w", err)
	}
	return w.self.connectGroups(ctx, 0, accepts, func(context.Context) (*dynamic.RootConn, error) {
		return dynamic.NewRootConn(conn), nil
	})
}
