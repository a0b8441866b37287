package sockets

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// SCTPListener accepts associations in the one-to-one style. It is a net.Listener; its methods
// may be called concurrently.
type SCTPListener struct {
	set     *settings
	port    *port
	waiters waiters // in Accept; guarded by mu

	mu       sync.Mutex
	ready    []*SCTPConn // that wait for Accept
	deadline readLimit
	closed   bool
	err      error // of Accept, once no more associations are taken
}

// bind gives the listener its port.
func (l *SCTPListener) bind(p *port) {
	l.mu.Lock()
	l.port, l.waiters.t = p, p.tr.Transport
	l.mu.Unlock()
	p.watch(func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = err
		l.waiters.wake()
	})
}

// newPeer makes the socket of an association that a peer opened.
func (l *SCTPListener) newPeer(p *port) *SCTPConn {
	c := newConn(l.set, false)
	c.bind(p)
	p.retain()
	return c
}

// accept has a socket wait for Accept, and reports whether there is room.
func (l *SCTPListener) accept(c *SCTPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.ready) >= l.set.Backlog {
		return false
	}
	l.ready = append(l.ready, c)
	l.waiters.wake()
	return true
}

// AcceptSCTP returns the next association. It blocks until there is one, the deadline passes
// (os.ErrDeadlineExceeded) or the listener is closed (net.ErrClosed, syscall.EBADF).
func (l *SCTPListener) AcceptSCTP() (*SCTPConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, l.opError("accept", errClosed)
		case l.deadline.passed():
			return nil, l.opError("accept", errDeadline)
		case len(l.ready) > 0:
			c := l.ready[0]
			l.ready[0] = nil
			l.ready = l.ready[1:]
			return c, nil
		case l.err != nil:
			return nil, l.opError("accept", l.err)
		}
		l.waiters.wait(&l.mu)
	}
}

// Accept is AcceptSCTP as of net.Listener; the connection is an *SCTPConn.
func (l *SCTPListener) Accept() (net.Conn, error) {
	c, err := l.AcceptSCTP()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *SCTPListener) opError(op string, err error) error {
	e := &net.OpError{Op: op, Net: "sctp", Err: err}
	if l != nil && l.port != nil {
		e.Source = l.Addr()
	}
	return e
}

// Close stops accepting. Associations that were not accepted are aborted, accepted ones go on
// and keep the port. A second Close returns an error that is net.ErrClosed and syscall.EBADF.
func (l *SCTPListener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.opError("close", errClosed)
	}
	l.closed = true
	ready := l.ready
	l.ready = nil
	l.deadline.set(time.Time{}, nil)
	l.waiters.wake()
	l.mu.Unlock()
	l.port.stopAccepting()
	for _, c := range ready {
		if a := c.Association(); a != nil {
			a.Abort("listener closed")
		}
		c.Close()
	}
	l.port.release()
	return nil
}

// Addr returns a *SCTPAddr with the addresses that are listened on.
func (l *SCTPListener) Addr() net.Addr { return fromAddr(l.port.ep.Addr()) }

// SetDeadline sets the deadline of Accept, also of one that blocks; the zero Time is none.
func (l *SCTPListener) SetDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.opError("set", errClosed)
	}
	l.deadline.set(t, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiters.wake()
	})
	l.waiters.wake()
	return nil
}

// String names the listener by its addresses.
func (l *SCTPListener) String() string { return "sctp listener " + l.Addr().String() }

// SyscallConn returns an error that is errors.ErrUnsupported: there is no file descriptor.
func (l *SCTPListener) SyscallConn() (syscall.RawConn, error) {
	return nil, l.opError("raw", errUnsupported)
}

var _ net.Listener = (*SCTPListener)(nil)
