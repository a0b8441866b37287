package rconn

import (
	"context"
	"net"
)

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// until is what a waiting call may be ended by, besides the connection: a context
// or a deadline.
type until struct {
	done <-chan struct{}
	err  func() error
}

// of makes an until of a context.
func of(ctx context.Context) until { return until{ctx.Done(), ctx.Err} }

// lock takes the token of one direction.
func (c *Conn) lock(ch chan struct{}, u until) error {
	if err := c.ended(u); err != nil {
		return err
	}
	select {
	case ch <- struct{}{}:
		return nil
	case <-u.done:
		return u.err()
	case <-c.closed:
		return net.ErrClosed
	}
}

// ended returns why a call may not go on, if so.
func (c *Conn) ended(u until) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	case <-u.done:
		return u.err()
	default:
		return nil
	}
}

// wait waits for a token.
func (c *Conn) wait(ch chan struct{}, u until) error {
	select {
	case <-ch:
		return nil
	case <-u.done:
		return u.err()
	case <-c.closed:
		return net.ErrClosed
	}
}
