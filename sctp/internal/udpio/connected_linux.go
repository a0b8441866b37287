package udpio

import (
	"net"
	"sync"

	"github.com/weftstack/weft/sctp/internal/slab"
	"golang.org/x/sys/unix"
)

// connectedUDP is a Connection on a connected UDP socket of the caller's: batches are read and
// written by the system calls of conn, on a duplicate of its descriptor, so that a number that the
// caller has freed by Close is never used. Read waits in the runtime's poller, as the caller's
// socket does: Close and the deadlines of the caller's socket act on it.
type connectedUDP struct{ *conn }

// newConnectedUDP returns a Connection on uc, which it owns from then on; nil if uc is not
// connected or its socket cannot be used so.
func newConnectedUDP(uc *net.UDPConn) Connection {
	remote := addrPortOf(uc.RemoteAddr())
	raw, err := uc.SyscallConn()
	if err != nil || !remote.IsValid() {
		return nil
	}
	fd, err := dup(raw)
	if err != nil {
		return nil
	}
	c := newConnFD(fd)
	c.caller, c.ep, c.epRaw = uc, uc, raw
	c.remote, c.connected, c.only = ConnRemote, true, true
	c.source.onHost = remote.Addr() == addrPortOf(uc.LocalAddr()).Addr() || remote.Addr().IsLoopback()
	c.local = ConnLocal
	c.setOffload()
	c.groSwitch.init(c.gro)
	c.rd.init(c)
	return connectedUDP{c}
}

// Start implements Connection. The socket takes every packet, and Write says what became of it.
func (c connectedUDP) Start(func(), func(error)) {}

// Full implements Connection: Write blocks instead, as that of every socket.
func (c connectedUDP) Full() bool { return false }

// DeferFlush implements Connection. A Read returns all that waits, and the flush is a system call.
func (c connectedUDP) DeferFlush() bool { return false }

// Batches implements Connection.
func (c connectedUDP) Batches() int { return connectedBatches }

// connectedBatches is how many GRO batches one Read returns at most. Each takes a buffer of 64 KiB
// while the association lives.
const connectedBatches = 2

// Read implements Conn.
func (c connectedUDP) Read(mu sync.Locker, bufs []*slab.Buf, metas []Meta) (int, error) {
	return c.conn.Read(mu, bufs[:min(len(bufs), connectedBatches)], metas)
}

// CanPoll implements Conn. Other goroutines cannot poll: the runtime's poller would go on waking Read.
func (c connectedUDP) CanPoll() bool { return false }

// TryRead implements Conn.
func (c connectedUDP) TryRead([]*slab.Buf, []Meta) (int, error) { return 0, nil }

// Poll implements Conn.
func (c connectedUDP) Poll([]*slab.Buf, []Meta) (int, error) { return 0, nil }

// Polled implements Conn.
func (c connectedUDP) Polled(bool) bool { return true }

// Unwatch implements Conn.
func (c connectedUDP) Unwatch() {}

// mayWrite returns an error if the caller's socket is closed, or its deadline has passed.
func (c *conn) mayWrite() error { return c.epRaw.Write(func(uintptr) bool { return true }) }

// waitToWrite waits until the socket fd, a duplicate of the caller's, has room. It ends as mayWrite does.
func (c *conn) waitToWrite(fd int) error {
	return c.epRaw.Write(func(uintptr) bool {
		p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}
