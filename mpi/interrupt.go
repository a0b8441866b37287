package mpi

import (
	"context"
	"net"
	"time"
)

// past is a deadline that ends blocked reads and writes.
var past = time.Unix(1, 0)

// interrupt ends reads and writes of conn when ctx is done. Undo must be called; it
// lifts the deadline, and returns why ctx is done if they were ended.
func interrupt(ctx context.Context, conn net.Conn) (undo func() error) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = conn.SetDeadline(past)
	})
	return func() error {
		if stop() {
			return nil
		}
		<-over // nobody can set it any more
		_ = conn.SetDeadline(time.Time{})
		return context.Cause(ctx)
	}
}

// exchangeBytes writes out to conn while read reads what the other end writes.
func exchangeBytes(ctx context.Context, conn net.Conn, out []byte, read func() error) error {
	undo := interrupt(ctx, conn)
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(out)
		wrote <- err
	}()
	err := read()
	if err != nil {
		_ = conn.SetWriteDeadline(past)
	}
	if e := <-wrote; err == nil {
		err = e
	}
	if cause := undo(); err != nil && cause != nil {
		err = cause
	}
	return err
}
