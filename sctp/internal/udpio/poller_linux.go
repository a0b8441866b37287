package udpio

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Poller lets one goroutine wait for datagrams on several sockets at once, apart
// from those in Read.
type Poller struct {
	// mu is read-locked around every use of epfd, but for that of Wait, so that Close
	// cannot let the number be reused. It comes after fdmu of a conn.
	mu     sync.RWMutex
	closed bool // guarded by mu

	epfd  int
	ep    *os.File // owns epfd
	raw   syscall.RawConn
	try   func(uintptr) bool
	look  func() bool // argument of the Wait in progress
	begun bool        // Wait has not looked yet: what is ready was so before
}

// NewPoller returns a Poller without sockets.
func NewPoller() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &Poller{epfd: fd, ep: os.NewFile(uintptr(fd), "udpio")}
	p.try = func(fd uintptr) bool {
		if p.begun {
			// Only what is not on the list of the ready wakes anybody when it is
			// armed again.
			p.begun = false
			var was [16]unix.EpollEvent
			_, _ = unix.EpollWait(int(fd), was[:], 0)
		}
		return p.look()
	}
	if p.raw, err = p.ep.SyscallConn(); err != nil {
		p.ep.Close()
		return nil, err
	}
	return p, nil
}

// Add adds a socket, unarmed. It reports false if c is not the kernel's. A
// closed socket leaves by itself.
func (p *Poller) Add(c Conn) bool {
	k, ok := c.(*conn)
	return ok && k.addTo(p)
}

// Arm tells whether datagrams of c end a Wait. Arming a socket that has some
// ends one at once.
func (p *Poller) Arm(c Conn, on bool) {
	if k, ok := c.(*conn); ok {
		k.arm(p, on)
	}
}

// Wait calls look, which reads, until it reports true: first at once and then
// whenever there are datagrams on an armed socket. It returns false if Kick or
// Close ended it. Only one goroutine may be in Wait.
func (p *Poller) Wait(look func() bool) bool {
	p.look, p.begun = look, true
	return p.raw.Read(p.try) == nil
}

// Kick ends Wait, or the next one, until Reset. It does not block.
func (p *Poller) Kick() { _ = p.ep.SetReadDeadline(past) }

// Reset takes Kick back.
func (p *Poller) Reset() { _ = p.ep.SetReadDeadline(never) }

// Close ends Wait for good. The sockets stay as they are.
func (p *Poller) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.ep.Close()
}

// past and never are deadlines.
var past, never = time.Unix(1, 0), time.Time{}
