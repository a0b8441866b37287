package mpi

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
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

// joinMagic begins the messages that the processes exchange.
const joinMagic = "weft join 1\n"

// joinNonce is the length of the random bytes that follow it.
const joinNonce = 16

func (w *World) join2(ctx context.Context, conn net.Conn) (*Comm, error) {
	// The one with the greater number connects. Both are ready to accept before
	// they tell theirs.
	if err := w.transport.listen(); err != nil {
		return nil, err
	}
	own := append([]byte(joinMagic), make([]byte, joinNonce)...)
	_, _ = rand.Read(own[len(joinMagic):]) // never fails
	other := make([]byte, len(own))
	err := exchangeBytes(ctx, conn, own, func() error {
		_, err := io.ReadFull(conn, other)
		return err
	})
	if err == nil && !bytes.HasPrefix(other, []byte(joinMagic)) {
		err = fmt.Errorf("%w: the other end does not join", ErrProtocol)
	}
	accepts := bytes.Compare(own, other) < 0
	if err == nil && bytes.Equal(own, other) {
		err = fmt.Errorf("%w: both ends of the connection are the same", ErrRank)
	}
	if err != nil {
		return nil, fmt.Errorf("mpi: joining: %w", err)
	}
	return w.self.connectGroups(ctx, 0, accepts, func(context.Context) (*rootConn, error) {
		return &rootConn{conn: conn, keepOpen: true}, nil
	})
}
