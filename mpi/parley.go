package mpi

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// parley is the connection between the roots.
type parley struct {
	conn  net.Conn
	leave bool // the connection is the program's
}

func (p *parley) close() {
	if p != nil && !p.leave {
		_ = p.conn.Close()
	}
}

// swap exchanges one message with the other root.
func (p *parley) swap(ctx context.Context, b []byte) ([]byte, error) {
	// The deadline is undone when nobody can set it any more.
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = p.conn.SetDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-over
			_ = p.conn.SetDeadline(time.Time{})
		}
	}()
	wrote := make(chan error, 1)
	go func() { wrote <- writeFrame(p.conn, b) }()
	other, err := readFrame(p.conn, maxRound)
	if err != nil {
		_ = p.conn.SetWriteDeadline(time.Unix(1, 0))
	}
	if e := <-wrote; err == nil {
		err = e
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return other, err
}

func writeFrame(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func readFrame(r io.Reader, limit int) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(n[:])
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("%w: message of %d bytes", ErrProtocol, size)
	}
	// No more is allocated than comes.
	b, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(b) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}
