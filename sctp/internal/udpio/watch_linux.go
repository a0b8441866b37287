package udpio

import "golang.org/x/sys/unix"

// watch is the epoll instance that wakes Read for datagrams. While a socket is in one, the
// kernel goes through a list of waiters for each datagram that comes, and for each that has
// left, even if no events are armed: a fifth of a small round trip.
type watch struct {
	epfd  int
	armed bool // datagrams wake Read; guarded by watchMu
	in    bool // the sockets are in it; guarded by watchMu
}

// events returns the event mask with which datagrams wake Read, if armed, or do not. Errors
// always wake it, and stay on the ready list after they were reported unless the mask has
// EPOLLET.
func events(armed bool) uint32 {
	const edge = 1 << 31 // EPOLLET is negative in package unix
	if armed {
		return unix.EPOLLIN | edge
	}
	return edge
}

// set has w tell of fd what it is armed for.
func (w *watch) set(fd int) error {
	ev := unix.EpollEvent{Events: events(w.armed)}
	if w.in {
		return unix.EpollCtl(w.epfd, unix.EPOLL_CTL_MOD, fd, &ev)
	}
	err := unix.EpollCtl(w.epfd, unix.EPOLL_CTL_ADD, fd, &ev)
	if err == unix.EEXIST { // another one of the sockets could not be added
		err = unix.EpollCtl(w.epfd, unix.EPOLL_CTL_MOD, fd, &ev)
	}
	return err
}

// forget is the opposite of set.
func (w *watch) forget(fd int) { _ = unix.EpollCtl(w.epfd, unix.EPOLL_CTL_DEL, fd, nil) }

// watch has datagrams wake Read, or not. fdmu is read-locked.
func (c *conn) watch(armed bool) error {
	c.watchMu.Lock()
	defer c.watchMu.Unlock()
	w := &c.own
	w.armed = armed
	err := w.set(c.fd)
	if n := c.dominant.open; n != nil && err == nil {
		err = w.set(n.fd)
	}
	w.in = w.in || err == nil
	return err
}

// watchPeerSocket adds the peer socket to the epoll instance, armed as c is. fdmu is locked.
func (c *conn) watchPeerSocket(fd int) error {
	c.watchMu.Lock()
	defer c.watchMu.Unlock()
	if !c.own.in {
		return nil
	}
	one := watch{epfd: c.own.epfd, armed: c.own.armed}
	return one.set(fd)
}

// Unwatch implements Conn.
func (c *conn) Unwatch() {
	c.fdmu.RLock()
	defer c.fdmu.RUnlock()
	c.watchMu.Lock()
	defer c.watchMu.Unlock()
	w := &c.own
	if c.closed || !w.in || w.armed {
		return
	}
	w.forget(c.fd)
	if n := c.dominant.open; n != nil {
		w.forget(n.fd)
	}
	w.in = false
}
