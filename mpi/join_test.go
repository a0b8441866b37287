package mpi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
)

func TestJoin(t *testing.T) {
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			a, b := net.Pipe()
			errc := make(chan error, 2)
			for i, conn := range []net.Conn{a, b} {
				go func() {
					errc <- RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
						c, err := w.Join(ctx, conn)
						if err != nil {
							return err
						}
						if err := mingle(ctx, c, i == 1, 2); err != nil {
							return err
						}
						// The connection is the program's again.
						if i == 0 {
							_, err = conn.Write([]byte("hello"))
						} else {
							var x [5]byte
							if _, err = conn.Read(x[:]); err == nil && string(x[:]) != "hello" {
								err = fmt.Errorf("read %q", x)
							}
						}
						return errors.Join(err, c.Disconnect(ctx))
					}, overTransport(tr))
				}()
			}
			for range 2 {
				if err := <-errc; err != nil {
					t.Error(err)
					cancel()
				}
			}
		})
	}
}

func TestJoinStranger(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	a, b := net.Pipe()
	go func() {
		_, _ = b.Write([]byte("GET / HTTP/1.0\r\nHost: example.com\r\n\r\n"))
	}()
	go func() {
		_, _ = b.Read(make([]byte, 100))
	}()
	err := RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
		if _, err := w.Join(ctx, a); !errors.Is(err, ErrProtocol) {
			return fmt.Errorf("joined a stranger: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Disconnect waits for requests that are not done.
func TestDisconnectWaits(t *testing.T) {
	twoJobs(t, 1, 1, func(ctx context.Context, w *World, port string) error {
		c, err := w.Comm().Accept(ctx, port, 0)
		if err != nil {
			return err
		}
		buf := make([]int, 1)
		r, err := Irecv(c, buf, 0, 7)
		if err != nil {
			return err
		}
		if err := c.Disconnect(ctx); err != nil {
			return err
		}
		if _, done, err := r.Test(); !done || err != nil || buf[0] != 42 {
			return fmt.Errorf("receive done: %v, %d, %w", done, buf[0], err)
		}
		return nil
	}, func(ctx context.Context, w *World, port string) error {
		c, err := w.Comm().Connect(ctx, port, 0, nil)
		if err != nil {
			return err
		}
		if err := Send(ctx, c, []int{42}, 0, 7); err != nil {
			return err
		}
		return c.Disconnect(ctx)
	})
}
