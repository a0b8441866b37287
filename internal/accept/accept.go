// Package accept serves listeners whose clients have to prove who they are. Until then
// a client costs little and not for long, and cannot keep others out; and an accept
// that fails for a moment does not end the listener.
package accept

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Pauses after an accept that failed for a moment.
const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// Server says how much clients may take before they have proved who they are.
type Server struct {
	// MaxUnproven bounds the connections whose client has not proved who it is. One
	// more closes the oldest of them, so that idle ones do not keep others out.
	MaxUnproven int
	// ProofTimeout is how long the proof may take: the deadline of the connection
	// until then. There is none if it is not positive.
	ProofTimeout time.Duration
}

// Serve takes connections from l and calls handle for each, on a goroutine of its own.
// When the client has proved who it is handle calls proven, once, which takes the
// deadline away and reports whether the connection is still open; from then on it is
// the caller's. All others are closed when handle returns or l ends. Serve closes l when
// ctx is done, and returns the error that ended l, after the last handle.
func (s Server) Serve(ctx context.Context, l net.Listener, handle func(conn net.Conn, proven func() bool)) error {
	var waiting unproven
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer waiting.close()
	for {
		conn, err := Next(ctx, l)
		if err != nil {
			return err
		}
		if s.ProofTimeout > 0 {
			_ = conn.SetDeadline(time.Now().Add(s.ProofTimeout)) // if it fails, so does handle
		}
		waiting.add(conn, s.MaxUnproven)
		wg.Go(func() {
			handle(conn, func() bool { return waiting.remove(conn) && conn.SetDeadline(time.Time{}) == nil })
			if waiting.remove(conn) {
				conn.Close()
			}
		})
	}
}

// Next returns the next connection of l. It tries again after errors that pass, such as
// a lack of descriptors, until ctx is done.
func Next(ctx context.Context, l net.Listener) (net.Conn, error) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		conn, err := l.Accept()
		if err == nil || !passes(err) {
			return conn, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// passes reports whether accepting may work again after an error.
func passes(err error) bool {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM) {
		return true
	}
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// unproven lists connections whose clients have not proved who they are, oldest first.
type unproven struct {
	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// add appends a connection, and closes the oldest if there are more than limit.
func (u *unproven) add(c net.Conn, limit int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		c.Close()
		return
	}
	u.conns = append(u.conns, c)
	if len(u.conns) > limit {
		u.conns[0].Close()
		u.conns = slices.Delete(u.conns, 0, 1)
	}
}

// remove takes a connection from the list and reports whether it was there.
func (u *unproven) remove(c net.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.conns, c)
	if i < 0 {
		return false
	}
	u.conns = slices.Delete(u.conns, i, i+1)
	return true
}

// close closes all connections of the list, and those that are added later.
func (u *unproven) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, c := range u.conns {
		c.Close()
	}
	u.conns = nil
}
