package udpio

import (
	"net/netip"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/slab"
	"golang.org/x/sys/unix"
)

// peerSocket is a second socket of a conn, which has the same address and is connected
// to the peer that nearly all datagrams come from: the kernel knows the route there
// and back, and need not look for it with every datagram. It gives what that peer
// sends to this socket.
type peerSocket struct {
	source
	abandoned bool // nothing is sent there any more; guarded by conn.fdmu
	closed    bool // guarded by conn.fdmu
}

// dominantPeer decides when to open the connected socket. All fields but to are owned by the reader.
type dominantPeer struct {
	options     Options
	to          atomic.Pointer[peerSocket] // for writers; nil while there is none
	open        *peerSocket                // for readers; written under fdmu
	ending      bool                       // open is left, when it is empty
	sharedFirst bool                       // what came before open may be left to read
	reads       uint8

	remote netip.AddrPort // where the latest datagrams came from
	score  int            // how many of them, at most maxPeerScore; others weigh more
	after  int            // how many of them make a near; 0: never

	lost uint64 // by near sockets that were closed; guarded by fdmu
}

const (
	// peerSocketAfter is how many trains from one peer, and none from others, make it the
	// near one. The number grows by peerSocketBackoff each time that it turns out to have been
	// too small, up to maxPeerSocketAfter: then there are several peers.
	peerSocketAfter    = 64
	peerSocketBackoff  = 4
	maxPeerSocketAfter = 1 << 20
	// maxPeerScore bounds the score, of which a train from somebody else takes
	// otherPeerPenalty.
	maxPeerScore     = 1024
	otherPeerPenalty = 64
	// sharedSocketEvery is how often the other socket is read first, and by a goroutine that
	// polls, at all.
	sharedSocketEvery = 8
)

// read reads both sockets, or if quick is true perhaps only the near one.
func (c *conn) read(bufs []*slab.Buf, metas []Meta, quick bool) (int, error) {
	b := &c.dominant
	n := b.open
	if n == nil {
		return c.readFrom(&c.source, bufs, metas)
	}
	if b.reads++; b.reads%sharedSocketEvery == 1 || b.sharedFirst {
		if got, err := c.readFrom(&c.source, bufs, metas); got != 0 || err != nil {
			return got, err
		}
		b.sharedFirst = false
		return c.readPeerSocket(n, bufs, metas)
	}
	if got, err := c.readPeerSocket(n, bufs, metas); got != 0 || err != nil || quick {
		return got, err
	}
	return c.readFrom(&c.source, bufs, metas)
}

// readPeerSocket reads the near socket, and closes it if that is empty and to be left.
func (c *conn) readPeerSocket(n *peerSocket, bufs []*slab.Buf, metas []Meta) (int, error) {
	for {
		got, err := c.readFrom(&n.source, bufs, metas)
		if got != 0 || err != nil || !c.dominant.ending || !c.closePeerSocket() {
			return got, err
		}
	}
}

// favour takes in from whom trains came.
func (c *conn) noteSenders(metas []Meta) {
	b := &c.dominant
	if b.after == 0 {
		return
	}
	for i := range metas {
		switch {
		case metas[i].Remote == b.remote:
			b.score = min(b.score+1, maxPeerScore)
		case b.open != nil:
			b.score -= otherPeerPenalty
			b.sharedFirst = false
		default:
			b.remote, b.score = metas[i].Remote, 1
		}
	}
	switch {
	case b.open == nil && b.score >= b.after:
		if err := c.openPeerSocket(b.remote); err != nil {
			b.after = 0
		}
	case b.open != nil && b.score < 0:
		b.to.Store(nil) // nothing is sent there any more
		b.ending = true
	}
}

// approach opens the near socket, next time if a writer is at it, who may wait for
// room in the socket buffer.
func (c *conn) openPeerSocket(remote netip.AddrPort) error {
	if !c.fdmu.TryLock() {
		return nil
	}
	defer c.fdmu.Unlock()
	if c.closed {
		return ErrClosed
	}
	fd, err := c.newPeerSocket(remote)
	if err != nil {
		return err
	}
	if err := c.watchPeerSocket(fd); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("epoll_ctl", err)
	}
	b := &c.dominant
	b.open, b.sharedFirst = &peerSocket{source: source{fd: fd, remote: remote, connected: true, onHost: c.onHost(remote)}}, true
	b.open.groSwitch.init(c.gro)
	c.peerFD.Store(int32(fd))
	for _, p := range c.pollers {
		p.again()
	}
	b.to.Store(b.open)
	return nil
}

// onHost reports whether what comes from remote comes in UDP datagrams that do not
// leave the host.
func (c *conn) onHost(remote netip.AddrPort) bool {
	return !c.ip && (remote.Addr() == c.local.Addr() || remote.Addr().IsLoopback())
}

// connect returns a socket like that of c, with the same address, which is
// connected to remote. Two sockets of one user may have one address if both say so
// when the second is bound; afterwards nobody else may have it. fdmu is locked.
func (c *conn) newPeerSocket(remote netip.AddrPort) (int, error) {
	sa, err := unix.Getsockname(c.fd)
	if err != nil {
		return -1, err
	}
	var family int
	var peer unix.Sockaddr
	if ip := remote.Addr(); c.v6 {
		family, peer = unix.AF_INET6, &unix.SockaddrInet6{Addr: ip.As16(), Port: int(remote.Port()), ZoneId: c.zone.idOf(ip)}
	} else {
		family, peer = unix.AF_INET, &unix.SockaddrInet4{Addr: ip.Unmap().As4(), Port: int(remote.Port())}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	reuse := func(fd, on int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, on) }
	like := &conn{source: source{fd: fd}, v6: c.v6}
	like.setOptions(c.dominant.options)
	if err = reuse(fd, 1); err == nil {
		if err = reuse(c.fd, 1); err == nil {
			err = unix.Bind(fd, sa)
			_ = reuse(c.fd, 0)
		}
		_ = reuse(fd, 0)
	}
	if err == nil {
		err = unix.Connect(fd, peer)
	}
	if err == nil && (like.ecn != c.ecn || like.gso.Load() && !c.gso.Load()) {
		err = unix.EOPNOTSUPP
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// leave closes the near socket, which is empty: there are others to talk to. If a
// writer is at it, next time. Before that nothing may come to it any more, for which
// it is connected to itself; leave reports whether it has to be read once more then.
func (c *conn) closePeerSocket() bool {
	if !c.fdmu.TryLock() {
		return false
	}
	defer c.fdmu.Unlock()
	b := &c.dominant
	if c.closed {
		return false
	}
	if n := b.open; !n.abandoned {
		n.abandoned, n.connected, n.only = true, false, false
		if sa, err := unix.Getsockname(n.fd); err == nil && unix.Connect(n.fd, sa) == nil {
			return true
		}
	}
	c.peerFD.Store(-1)
	for _, p := range c.pollers {
		p.again()
	}
	b.close()
	b.open = nil
	b.ending, b.score, b.remote = false, 0, netip.AddrPort{}
	b.after = min(b.after*peerSocketBackoff, maxPeerSocketAfter)
	return false
}

// close closes the near socket, if there is one, with fdmu locked.
func (b *dominantPeer) close() {
	if n := b.open; n != nil {
		b.to.Store(nil)
		n.closed = true
		b.lost += dropped(n.fd)
		unix.Close(n.fd)
	}
}

// drops returns how many datagrams were lost by near sockets. fdmu is read-locked.
func (b *dominantPeer) drops() uint64 {
	if n := b.open; n != nil && !n.closed {
		return b.lost + dropped(n.fd)
	}
	return b.lost
}

// connected returns the socket for what w has, which is for a near peer. fdmu is
// read-locked.
func (w *writer) usePeerSocket(c *conn) int {
	if w.to.abandoned || w.to.closed {
		w.useSharedSocket()
		return c.fd
	}
	w.hdr.Name = nil
	return w.to.fd
}

// unconnected has the datagrams of w go by the socket for all peers.
func (w *writer) useSharedSocket() {
	w.to = nil
	w.hdr.Name = (*byte)(unsafe.Pointer(&w.name))
}
