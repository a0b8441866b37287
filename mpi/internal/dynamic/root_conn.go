package dynamic

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/weftstack/weft/mpi/internal/ctxconn"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// A RootConn is the connection between the roots of two groups.
type RootConn struct {
	conn     net.Conn
	keepOpen bool // the connection is the program's: Close leaves it open
}

// NewRootConn makes the connection of the roots of a connection of the program, which Close leaves
// open.
func NewRootConn(conn net.Conn) *RootConn { return &RootConn{conn: conn, keepOpen: true} }

// Close closes the connection. p may be nil.
func (p *RootConn) Close() {
	if p != nil && !p.keepOpen {
		_ = p.conn.Close()
	}
}

// exchange exchanges one message with the other root.
func (p *RootConn) exchange(ctx context.Context, b []byte) (other []byte, err error) {
	out := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	err = ctxconn.Exchange(ctx, p.conn, out, func() (err error) {
		other, err = readFrame(p.conn, MaxGroupMessage)
		return err
	})
	return other, err
}

// readFrame reads a message that is preceded by its length.
func readFrame(r io.Reader, limit int) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(n[:])
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("%w: message of %d bytes", mpierr.ErrProtocol, size)
	}
	// ReadAll allocates only as bytes arrive, whatever the length says.
	b, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(b) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}
