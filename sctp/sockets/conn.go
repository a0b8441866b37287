package sockets

import (
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/weftstack/weft/sctp"
)

// SCTPConn is a socket: an association in the one-to-one style, a net.Conn, or many in the
// one-to-many style. Its methods may be called concurrently. Errors are io.EOF, syscall.EAGAIN
// or *net.OpError; after Close they are net.ErrClosed and syscall.EBADF to errors.Is.
type SCTPConn struct {
	set     *settings
	many    bool // one-to-many
	port    *port
	waiters waiters // in reads; guarded by mu
	write   writeLimit

	mu       sync.Mutex
	queue    queue
	peer     *association                 // one-to-one; nil until it is established
	assocs   map[SCTPAssocID]*association // one-to-many
	events   int                          // SCTP_EVENT_ bits
	defaults SndRcvInfo                   // PPID in the order of the settings
	closed   bool
	ended    bool  // nothing more will be queued
	endErr   error // of reads then
	read     readLimit

	readTimeout, writeTimeout time.Duration // 0: none
	nonblock                  bool
	notes                     noteBudget
}

func newConn(set *settings, many bool) *SCTPConn {
	c := &SCTPConn{set: set, many: many, events: set.Events}
	if many {
		c.assocs = map[SCTPAssocID]*association{}
	}
	return c
}

// bind gives the socket its port, one reference of which is its own.
func (c *SCTPConn) bind(p *port) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.port, c.waiters.t = p, p.tr.Transport
}

// attach adds an association.
func (c *SCTPConn) attach(as *association) {
	c.mu.Lock()
	closed := c.closed
	if c.many {
		c.assocs[as.id] = as
	} else {
		c.peer = as
	}
	c.mu.Unlock()
	if closed {
		as.a.Abort("socket closed")
	}
}

// lost ends a one-to-many socket whose port takes no more associations.
func (c *SCTPConn) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.ended, c.endErr = true, err
		c.waiters.wake()
	}
}

// SCTPRead reads a message, or what is left of one that was longer than an earlier b. It
// blocks until there is one, the read deadline passes (os.ErrDeadlineExceeded), the time of
// SetReadTimeout has passed or SetNonBlock was called (syscall.EAGAIN), Close is called
// (net.ErrClosed) or the association ends: io.EOF after a graceful shutdown, otherwise an error
// that tells why and is syscall.ECONNRESET after an ABORT.
//
// The SndRcvInfo is nil unless SCTP_EVENT_DATA_IO was subscribed to, and for notifications: they
// are returned like messages if there is no NotificationHandler. See [SCTPConn.ReadMsg], which
// tells them apart and does not allocate.
func (c *SCTPConn) SCTPRead(b []byte) (int, *SndRcvInfo, error) {
	var info SndRcvInfo
	for {
		n, flags, err := c.ReadMsg(b, &info)
		switch {
		case err != nil:
			return 0, nil, err
		case flags&MSG_NOTIFICATION == 0:
			if c.subscribed(SCTP_EVENT_DATA_IO) {
				i := info
				return n, &i, nil
			}
			return n, nil, nil
		case c.set.NotificationHandler == nil:
			return n, nil, nil
		}
		if err := c.set.NotificationHandler(b[:n]); err != nil {
			return 0, nil, err
		}
	}
}

// ReadMsg is SCTPRead into info, which may be nil. The flag MSG_NOTIFICATION marks a
// notification; no handler is called. MSG_EOR is set if the read reached the end of the
// message: without it b was too small, or the message is being delivered in part because it
// fills half of the receive buffer. Other messages of the association come after its end; if
// there will be none a PartialDelivery says so, which a program that reads parts subscribes to.
func (c *SCTPConn) ReadMsg(b []byte, info *SndRcvInfo) (n, flags int, err error) {
	it, n, flags, err := c.receive(b, info)
	if it != nil {
		it.free()
	}
	return n, flags, c.opError("read", err)
}

// receive copies from the front of the queue, and returns the item if nothing is left of it.
func (c *SCTPConn) receive(b []byte, info *SndRcvInfo) (done *item, n, flags int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var timeout *readLimit
	for {
		it := c.queue.front()
		switch {
		case c.closed:
			return nil, 0, 0, errClosed
		case c.read.passed():
			return nil, 0, 0, errDeadline
		case len(b) == 0:
			return nil, 0, 0, nil
		case it != nil:
			n = copy(b, it.data)
			if info != nil {
				*info = it.info
				info.PPID = c.set.PPID.swap(info.PPID)
			}
			flags = it.flags
			if it.data = it.data[n:]; len(it.data) > 0 {
				return nil, n, flags &^ MSG_EOR, nil
			}
			c.queue.pop()
			c.notes.taken(it)
			return it, n, flags, nil
		case c.ended:
			return nil, 0, 0, c.endErr
		case c.nonblock, timeout != nil && timeout.passed():
			return nil, 0, 0, syscall.EAGAIN
		}
		if c.readTimeout > 0 && timeout == nil {
			timeout = new(readLimit)
			timeout.set(time.Now().Add(c.readTimeout), c.wake)
			defer timeout.set(time.Time{}, nil)
		}
		c.waiters.wait(&c.mu)
	}
}

// wake has goroutines that wait look again.
func (c *SCTPConn) wake() {
	c.mu.Lock()
	c.waiters.wake()
	c.mu.Unlock()
}

// Read is SCTPRead without the SndRcvInfo.
func (c *SCTPConn) Read(b []byte) (int, error) {
	n, _, err := c.SCTPRead(b)
	return n, err
}

// Close begins a graceful shutdown of the association, or of all, and returns: what was written
// is delivered in the background, for at most sctp.DefaultLinger without progress, and what was
// not read is discarded. Blocked calls end. A second Close, and one of nil, returns an error
// that is net.ErrClosed and syscall.EBADF.
func (c *SCTPConn) Close() error {
	if c == nil {
		return c.opError("close", errClosed)
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("close", errClosed)
	}
	c.closed = true
	c.read.set(time.Time{}, nil)
	dropped := c.queue.take(nil)
	list := c.associations()
	c.waiters.wake()
	c.mu.Unlock()
	c.write.set(time.Time{})
	for _, it := range dropped {
		it.free()
	}
	if c.many {
		c.port.stopAccepting()
	}
	for _, as := range list {
		as.a.Close()
	}
	c.port.release()
	return nil
}

// associations returns those of the socket. c.mu is held.
func (c *SCTPConn) associations() []*association {
	var list []*association
	if c.peer != nil {
		list = append(list, c.peer)
	}
	for _, as := range c.assocs {
		list = append(list, as)
	}
	return list
}

// find returns the association with an ID; 0 is that of a one-to-one socket.
func (c *SCTPConn) find(id SCTPAssocID) (*association, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch as := c.assocs[id]; {
	case c.closed:
		return nil, errClosed
	case !c.many && c.peer != nil && (id == 0 || id == c.peer.id):
		return c.peer, nil
	case as != nil:
		return as, nil
	}
	return nil, withErrno(fmt.Errorf("association %d: %w", id, errNoAssociation), syscall.EINVAL)
}

// addrs returns what the socket is called in errors.
func (c *SCTPConn) addrs() (local, remote net.Addr) {
	c.mu.Lock()
	p, peer := c.port, c.peer
	c.mu.Unlock()
	switch {
	case peer != nil:
		return fromAddr(peer.a.LocalAddr()), fromAddr(peer.a.RemoteAddr())
	case p != nil:
		return fromAddr(p.ep.Addr()), nil
	}
	return nil, nil
}

// LocalAddr returns a *SCTPAddr with the local addresses.
func (c *SCTPConn) LocalAddr() net.Addr {
	local, _ := c.addrs()
	return local
}

// RemoteAddr returns a *SCTPAddr with the addresses of the peer, the primary one first, and nil
// for a one-to-many socket.
func (c *SCTPConn) RemoteAddr() net.Addr {
	_, remote := c.addrs()
	return remote
}

// SetDeadline sets the deadlines of reads and writes, also of those that block; the zero Time is
// none. It returns an error that is net.ErrClosed after Close.
func (c *SCTPConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline is SetDeadline of reads.
func (c *SCTPConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.read.set(t, c.wake)
		c.waiters.wake()
	}
	c.mu.Unlock()
	if closed {
		return c.opError("set", errClosed)
	}
	return nil
}

// SetWriteDeadline is SetDeadline of writes.
func (c *SCTPConn) SetWriteDeadline(t time.Time) error {
	if c.isClosed() {
		return c.opError("set", errClosed)
	}
	c.write.set(t)
	return nil
}

func (c *SCTPConn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Association returns the association under a one-to-one socket, with all that package sctp can
// do; nil for a one-to-many socket. It must not be read, and its SetValue not be called: the
// socket does both.
func (c *SCTPConn) Association() *sctp.Association {
	if as, err := c.find(0); err == nil {
		return as.a
	}
	return nil
}

// String names the socket by its addresses.
func (c *SCTPConn) String() string {
	local, remote := c.addrs()
	if remote == nil {
		return fmt.Sprintf("sctp socket %v", local)
	}
	return fmt.Sprintf("sctp socket %v - %v", local, remote)
}

// SyscallConn returns an error that is errors.ErrUnsupported: there is no file descriptor.
func (c *SCTPConn) SyscallConn() (syscall.RawConn, error) {
	return nil, c.opError("raw", errUnsupported)
}

var _ io.ReadWriteCloser = (*SCTPConn)(nil)
var _ net.Conn = (*SCTPConn)(nil)
