package dynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weftstack/weft/mpi/internal/ctxconn"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Dial connects to a port and waits for an Accept. dial makes a connection to the address that the port was opened
// with.
func Dial(
	ctx context.Context, name string, wait time.Duration, dial func(context.Context, string) (net.Conn, error),
) (*RootConn, error) {
	addr, key, err := parsePort(name)
	if err != nil {
		return nil, err
	}
	limit := fmt.Errorf("%w: nobody accepted within %v", mpierr.ErrPort, wait)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, limit)
	defer cancel()
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", mpierr.ErrPort, ctxconn.Cause(ctx, err))
	}
	undo := ctxconn.Interrupt(ctx, conn)
	err = func() error {
		h, msg := handshake.Connect(handshake.Params{Key: key, Self: 1, Size: 2}, 0)
		if err := handshake.Run(conn, h, msg); err != nil {
			return err
		}
		var b [1]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			return err
		}
		if b[0] != aliveProbe {
			return mpierr.ErrProtocol
		}
		b[0] = aliveReply
		_, err := conn.Write(b[:])
		return err
	}()
	if cause := undo(); cause != nil {
		err = cause
	}
	if err != nil {
		_ = conn.Close()
		if errors.Is(err, io.EOF) {
			err = errors.New("closed")
		}
		return nil, fmt.Errorf("%w: %w", mpierr.ErrPort, ctxconn.Cause(ctx, err))
	}
	return &RootConn{conn: conn}, nil
}
