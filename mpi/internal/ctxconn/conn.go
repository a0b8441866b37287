// Package ctxconn lets a context end what a goroutine does with a network connection.
package ctxconn

import (
	"context"
	"net"
	"time"
)

// Past is a deadline that ends blocked reads and writes.
var Past = time.Unix(1, 0)

// Interrupt ends reads and writes of conn when ctx is done. Undo must be called; it
// lifts the deadline, and returns why ctx is done if they were ended.
func Interrupt(ctx context.Context, conn net.Conn) (undo func() error) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = conn.SetDeadline(Past)
	})
	return func() error {
		if stop() {
			return nil
		}
		<-over // Past is set by now, not later
		_ = conn.SetDeadline(time.Time{})
		return context.Cause(ctx)
	}
}

// Exchange writes out to conn while read reads what the other end writes.
func Exchange(ctx context.Context, conn net.Conn, out []byte, read func() error) error {
	undo := Interrupt(ctx, conn)
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(out)
		wrote <- err
	}()
	err := read()
	if err != nil {
		_ = conn.SetWriteDeadline(Past)
	}
	if e := <-wrote; err == nil {
		err = e
	}
	if cause := undo(); err != nil && cause != nil {
		err = cause
	}
	return err
}

// Cause returns why ctx has ended, or err if it has not.
func Cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
