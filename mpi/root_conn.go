package mpi

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// rootConn is the connection between the roots of two groups.
type rootConn struct {
	conn     net.Conn
	keepOpen bool // the connection is the program's: close leaves it open
}

func (p *rootConn) close() {
	if p != nil && !p.keepOpen {
		_ = p.conn.Close()
	}
}

// exchange exchanges one message with the other root.
func (p *rootConn) exchange(ctx context.Context, b []byte) (other []byte, err error) {
	err = exchangeBytes(ctx, p.conn, append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...), func() (err error) {
		other, err = readFrame(p.conn, maxGroupMessage)
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
		return nil, fmt.Errorf("%w: message of %d bytes", ErrProtocol, size)
	}
	// ReadAll allocates only as bytes arrive, whatever the length says.
	b, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(b) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}
