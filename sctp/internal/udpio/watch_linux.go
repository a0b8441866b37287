package udpio

import "golang.org/x/sys/unix"

// watch is an epoll instance that tells of datagrams on the sockets of a conn: its own,
// for Read, or that of a Poller. A socket that is in one makes the kernel go through a
// list for each datagram that comes, and for each that has left, whether anybody wants
// to know or not; in two it is a fifth of a small round trip.
type watch struct {
	epfd   int
	poller *Poller // that epfd belongs to; nil for a conn's own
	armed  bool    // guarded by watchMu, as in is
	in     bool    // the sockets are in it
}

// events returns the event mask with which datagrams wake who waits, or with
// which they do not. Errors always do, and stay on the list of the ready after they
// were looked at unless the mask has EPOLLET.
func events(armed bool) uint32 {
	const edge = 1 << 31 // EPOLLET is negative in package unix
	if armed {
		return unix.EPOLLIN | edge
	}
	return edge
}

// set has w tell of fd what it is armed for.
func (w *watch) set(fd int) error {
	if p := w.poller; p != nil {
		p.mu.RLock()
		defer p.mu.RUnlock()
		if p.closed {
			return ErrClosed
		}
	}
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
func (w *watch) forget(fd int) {
	if p := w.poller; p != nil {
		p.mu.RLock()
		defer p.mu.RUnlock()
		if p.closed {
			return
		}
	}
	_ = unix.EpollCtl(w.epfd, unix.EPOLL_CTL_DEL, fd, nil)
}

// watch arms w, or disarms it. fdmu is read-locked.
func (c *conn) watch(w *watch, armed bool) error {
	c.watchMu.Lock()
	defer c.watchMu.Unlock()
	w.armed = armed
	err := w.set(c.fd)
	if n := c.nearby.open; n != nil && err == nil {
		err = w.set(n.fd)
	}
	w.in = w.in || err == nil
	return err
}

// watchNear has a near socket watched as c is. fdmu is locked.
func (c *conn) watchNear(fd int) error {
	c.watchMu.Lock()
	defer c.watchMu.Unlock()
	for _, w := range c.watches {
		if !w.in {
			continue
		}
		one := watch{epfd: w.epfd, poller: w.poller, armed: w.armed}
		if err := one.set(fd); err != nil && err != ErrClosed {
			return err
		}
	}
	return nil
}

// Unwatch implements Conn.
func (c *conn) Unwatch() {
	c.fdmu.RLock()
	defer c.fdmu.RUnlock()
	c.watchMu.Lock()
	defer c.watchMu.Unlock()
	if c.closed {
		return
	}
	for _, w := range c.watches {
		if !w.in || w.armed {
			continue
		}
		w.forget(c.fd)
		if n := c.nearby.open; n != nil {
			w.forget(n.fd)
		}
		w.in = false
	}
}

// addTo adds the sockets of c to a Poller, unarmed.
func (c *conn) addTo(p *Poller) bool {
	c.fdmu.RLock()
	defer c.fdmu.RUnlock()
	w := &watch{epfd: p.epfd, poller: p}
	if c.closed || c.watch(w, false) != nil {
		return false
	}
	c.watchMu.Lock()
	c.watches = append(c.watches, w)
	c.watchMu.Unlock()
	return true
}

// arm changes whether datagrams wake who waits on a Poller.
func (c *conn) arm(p *Poller, on bool) {
	c.fdmu.RLock()
	defer c.fdmu.RUnlock()
	if c.closed {
		return
	}
	c.watchMu.Lock()
	watches := c.watches
	c.watchMu.Unlock()
	for _, w := range watches {
		if w.poller == p {
			_ = c.watch(w, on)
		}
	}
}
