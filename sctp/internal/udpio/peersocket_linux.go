package udpio

import (
	"net/netip"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/slab"
	"golang.org/x/sys/unix"
)

// peerSocket is a connected socket of the dominant peer: a second socket with the address of
// the conn, connected to the peer that nearly all datagrams come from. The kernel delivers
// that peer's datagrams to it. It caches the route of a connected socket, where it otherwise
// looks one up for each datagram: up to 0.5 µs each way.
type peerSocket struct {
	source
	abandoned bool // nothing is sent by it any more, see closePeerSocket; guarded by conn.fdmu
	closed    bool // guarded by conn.fdmu
}

// dominantPeer decides when to open and close the connected socket. All fields but to and
// lost are owned by the reader.
type dominantPeer struct {
	options     Options
	to          atomic.Pointer[peerSocket] // what writers use; nil while there is none
	open        *peerSocket                // what the reader reads; written under fdmu
	ending      bool                       // the reader closes open as soon as it is empty
	sharedFirst bool                       // datagrams that came before open was opened may be unread
	reads       uint8                      // counts reads, to read the shared socket in turn

	remote netip.AddrPort // the sender of the latest datagrams
	score  int            // rises with batches from remote, falls faster with batches from others
	after  int            // the score at which open is opened; 0: never

	lost uint64 // datagrams that closed peer sockets have dropped; guarded by fdmu
}

const (
	// peerSocketAfter is how many GRO batches from one peer, with none from others between,
	// make it the dominant one: enough to tell a long exchange from a few packets. Each time
	// that another peer ends it the number grows by peerSocketBackoff, up to
	// maxPeerSocketAfter: a socket with several peers gains nothing.
	peerSocketAfter    = 64
	peerSocketBackoff  = 4
	maxPeerSocketAfter = 1 << 20
	// maxPeerScore bounds the score. A batch from another peer takes otherPeerPenalty off, so
	// that 17 of them close the socket.
	maxPeerScore     = 1024
	otherPeerPenalty = 64
	// sharedSocketEvery is how often the shared socket is read before the peer socket. A
	// goroutine that polls reads it only then, which saves it most of the reads that find nothing.
	sharedSocketEvery = 8
)

// read reads the peer socket and the shared one until one of them has datagrams. If quick is
// true it may leave out the shared one.
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

// readPeerSocket reads the peer socket, and closes it if it is empty and another peer has
// ended its use.
func (c *conn) readPeerSocket(n *peerSocket, bufs []*slab.Buf, metas []Meta) (int, error) {
	for {
		got, err := c.readFrom(&n.source, bufs, metas)
		if got != 0 || err != nil || !c.dominant.ending || !c.closePeerSocket() {
			return got, err
		}
	}
}

// noteSenders counts the senders of GRO batches, and opens the peer socket or ends its use.
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
		b.to.Store(nil) // writers use the shared socket again
		b.ending = true
	}
}

// openPeerSocket opens the peer socket. While a writer holds fdmu, perhaps waiting for room
// in the socket buffer, it does nothing: the next batch calls it again.
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
	b.open, b.sharedFirst = &peerSocket{source: source{fd: fd, remote: remote, connected: true,
		onHost: c.onHost(remote)}}, true
	b.open.groSwitch.init(c.gro)
	c.peerFD.Store(int32(fd))
	for _, p := range c.pollers {
		p.again()
	}
	b.to.Store(b.open)
	return nil
}

// onHost reports whether remote is a UDP address of this host.
func (c *conn) onHost(remote netip.AddrPort) bool {
	return !c.ip && (remote.Addr() == c.local.Addr() || remote.Addr().IsLoopback())
}

// newPeerSocket returns a socket with the address and options of c, connected to remote. Two
// sockets of one user may share an address if both have SO_REUSEPORT while the second one is
// bound; it is cleared afterwards, so that no other program can share it. fdmu is locked.
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

// closePeerSocket closes the peer socket, which is empty, in two steps, so that no datagram
// is lost. The first call connects it to itself: the kernel delivers the peer's datagrams to
// the shared socket from then on. It reports true, and the caller reads the socket once more.
// The second call closes it. While a writer holds fdmu it does nothing.
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

// close closes the peer socket, if there is one. fdmu is locked.
func (b *dominantPeer) close() {
	if n := b.open; n != nil {
		b.to.Store(nil)
		n.closed = true
		b.lost += dropped(n.fd)
		unix.Close(n.fd)
	}
}

// drops returns how many datagrams peer sockets have dropped. fdmu is read-locked.
func (b *dominantPeer) drops() uint64 {
	if n := b.open; n != nil && !n.closed {
		return b.lost + dropped(n.fd)
	}
	return b.lost
}

// usePeerSocket returns the descriptor to send the datagrams of w with, which are for the
// dominant peer: that of the shared socket if the peer socket is about to be closed. fdmu is
// read-locked.
func (w *writer) usePeerSocket(c *conn) int {
	if w.to.abandoned || w.to.closed {
		w.useSharedSocket()
		return c.fd
	}
	w.hdr.Name = nil
	return w.to.fd
}

// useSharedSocket makes w send by the socket for all peers.
func (w *writer) useSharedSocket() {
	w.to = nil
	if w.hdr.Namelen > 0 { // the socket has more than one peer
		w.hdr.Name = (*byte)(unsafe.Pointer(&w.name))
	}
}
