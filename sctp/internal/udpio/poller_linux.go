package udpio

import (
	"encoding/binary"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller lets one goroutine wait for datagrams on several sockets at once, apart
// from those in Read. It blocks its thread in ppoll rather than in the runtime's poller:
// the sockets need not be in an epoll instance, and it is one call where the runtime makes
// three.
type Poller struct {
	kicked atomic.Bool   // Wait ends
	inCall atomic.Bool   // Wait is in ppoll, or about to be
	calls  atomic.Uint32 // of ppoll, that have returned

	// mu guards what follows. It comes after fdmu of a conn.
	mu      sync.Mutex
	conns   []*conn
	wake    int // an eventfd, which ends ppoll; -1 once it is closed
	waiting bool
	closed  bool

	fds []unix.PollFd // of the Wait in progress
}

// blockLimit is how long a Wait stays in ppoll before it lets other goroutines run, 1 ms. Its
// thread keeps a processor (P) of the runtime meanwhile. The goroutines and timers of that P
// run only once an idle P steals them, or the runtime's monitor retakes it after up to 20 ms.
const blockLimit = time.Millisecond

// NewPoller returns a Poller without sockets.
func NewPoller() (*Poller, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &Poller{wake: fd}, nil
}

// Add adds a socket. It reports false if c is not the kernel's. A closed socket leaves
// by itself.
func (p *Poller) Add(c Conn) bool {
	k, ok := c.(*conn)
	if !ok {
		return false
	}
	k.fdmu.Lock()
	defer k.fdmu.Unlock()
	p.mu.Lock()
	ok = !k.closed && !p.closed
	if ok {
		p.conns = append(p.conns, k)
		k.pollers = append(k.pollers, p)
	}
	p.mu.Unlock()
	p.again()
	return ok
}

// remove forgets a socket that is to be closed. A Wait in ppoll holds on to it, and its port:
// remove returns when that call is over.
func (p *Poller) remove(c *conn) {
	p.mu.Lock()
	if i := slices.Index(p.conns, c); i >= 0 {
		p.conns = slices.Delete(p.conns, i, i+1)
	}
	n := p.calls.Load()
	p.mu.Unlock()
	for p.again(); p.inCall.Load() && p.calls.Load() == n; {
		runtime.Gosched()
	}
}

// Wait blocks for datagrams and calls look, which reads them, until look reports true. It
// returns false if Kick or Close ended it. Only one goroutine may be in Wait.
func (p *Poller) Wait(look func() bool) bool {
	if !p.begin() {
		return false
	}
	defer p.end()
	for p.block() {
		if look() {
			return true
		}
	}
	return false
}

func (p *Poller) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = !p.closed
	return p.waiting
}

func (p *Poller) end() {
	p.mu.Lock()
	p.waiting = false
	if p.closed {
		p.closeWake()
	}
	p.mu.Unlock()
}

// block waits for a datagram. It reports false after Kick or Close.
func (p *Poller) block() bool {
	for {
		p.inCall.Store(true) // before kicked and the sockets are looked at, see again
		if p.kicked.Load() || !p.gather() {
			p.inCall.Store(false)
			return false
		}
		// A descriptor that is closed now, or given to somebody else, may end the call
		// for nothing: again follows.
		limit := unix.NsecToTimespec(int64(blockLimit))
		n, _, errno := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p.fds[0])), uintptr(len(p.fds)),
			uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		p.calls.Add(1)
		p.inCall.Store(false)
		p.takeErrors()
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return false
		case n == 0:
			runtime.Gosched()
		case p.fds[0].Revents != 0:
			var count [8]byte
			_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(p.fds[0].Fd), uintptr(unsafe.Pointer(&count[0])),
				uintptr(len(count)))
			if n > 1 && !p.kicked.Load() {
				return true
			}
		default:
			return true
		}
	}
}

// gather lists the descriptors to wait for.
func (p *Poller) gather() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.fds = append(p.fds[:0], unix.PollFd{Fd: int32(p.wake), Events: unix.POLLIN})
	for _, c := range p.conns {
		p.fds = append(p.fds, unix.PollFd{Fd: int32(c.fd), Events: unix.POLLIN})
		if fd := c.peerFD.Load(); fd >= 0 {
			p.fds = append(p.fds, unix.PollFd{Fd: fd, Events: unix.POLLIN})
		}
	}
	return true
}

// takeErrors has the error queues of the sockets read if one has an error, which otherwise
// would end each ppoll at once.
func (p *Poller) takeErrors() {
	for _, f := range p.fds[1:] {
		if f.Revents&unix.POLLERR == 0 {
			continue
		}
		p.mu.Lock()
		for _, c := range p.conns {
			c.icmp.due.Store(true)
		}
		p.mu.Unlock()
		return
	}
}

// again ends the ppoll of a Wait, which then looks at the sockets and flags once more.
func (p *Poller) again() {
	if !p.inCall.Load() {
		return
	}
	p.mu.Lock()
	p.interrupt()
	p.mu.Unlock()
}

// interrupt ends ppoll by the eventfd. mu is locked.
func (p *Poller) interrupt() {
	if p.wake >= 0 {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(p.wake, one[:])
	}
}

// Kick ends Wait, or the next one, until Reset. It does not block.
func (p *Poller) Kick() {
	p.kicked.Store(true)
	p.again()
}

// Reset takes Kick back.
func (p *Poller) Reset() { p.kicked.Store(false) }

// Close ends Wait for good. The sockets stay as they are.
func (p *Poller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.closed = true
	if p.waiting {
		p.interrupt() // end closes the eventfd
	} else {
		p.closeWake()
	}
	return nil
}

func (p *Poller) closeWake() {
	if p.wake >= 0 {
		unix.Close(p.wake)
		p.wake = -1
	}
}
