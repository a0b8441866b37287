//go:build linux || darwin

package tcp

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// direct is the state of a link for reading and writing its socket without blocking: functions
// that are called with the descriptor, their arguments and results.
type direct struct {
	read  func(uintptr) bool // readAll
	poll  func(uintptr)      // readOnce
	write func(uintptr) bool // writeNow

	got  bool     // poll found something; guarded by rmu
	bufs [][]byte // argument of write; n and err are its results. For the writing goroutine
	n    int
	err  error
}

func (d *direct) init(l *Link) { d.read, d.poll, d.write = l.readAll, l.readOnce, l.writeNow }

const (
	// maxIov bounds the number of buffers of one writev.
	maxIov = 64
	// minInPlace is the least rest of a body that is read directly into the receive buffer, in
	// bytes.
	minInPlace = 32 << 10
)

// tryWrite writes as much of bufs as the socket takes without blocking.
func (l *Link) tryWrite(bufs [][]byte) (int, error) {
	d := &l.direct
	d.bufs, d.n, d.err = bufs, 0, nil
	if err := l.raw.Write(d.write); err != nil {
		return 0, err
	}
	d.bufs = nil
	return d.n, d.err
}

func (l *Link) writeNow(fd uintptr) bool {
	d := &l.direct
	var n int
	var err error
	for {
		if len(d.bufs) == 1 {
			n, err = unix.Write(int(fd), d.bufs[0])
		} else {
			n, err = unix.Writev(int(fd), d.bufs[:min(len(d.bufs), maxIov)])
		}
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EAGAIN) {
		n, err = 0, nil
	}
	d.n, d.err = max(n, 0), err
	return true // never wait
}

// readLoop receives until the connection ends.
func (l *Link) readLoop() error { return l.raw.Read(l.direct.read) }

// readAll receives everything there is. It returns false to be called again when the socket is
// readable.
func (l *Link) readAll(fd uintptr) bool {
	for {
		l.rmu.Lock()
		_, err := l.receive(int(fd))
		l.rmu.Unlock()
		if errors.Is(err, unix.EAGAIN) {
			return false
		}
		if err != nil {
			return true
		}
	}
}

// Poll receives once without blocking, and reports whether there was something.
func (l *Link) Poll() bool {
	if !l.rmu.TryLock() {
		return false // another goroutine is receiving
	}
	defer l.rmu.Unlock()
	l.direct.got = false
	return l.rerr == nil && l.raw.Control(l.direct.poll) == nil && l.direct.got
}

func (l *Link) readOnce(fd uintptr) {
	n, err := l.receive(int(fd))
	l.direct.got = n > 0
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		l.kill(err)
	}
}

// receive reads once: into the buffer of the receive in progress if at least minInPlace bytes of
// its body are missing, else into the buffer of the link. rmu is held. Errors other than EAGAIN are
// final.
func (l *Link) receive(fd int) (n int, err error) {
	if l.rerr != nil {
		return 0, l.rerr
	}
	f := &l.Peer.Parsers[0]
	if f.DirectRoom() >= minInPlace {
		n, err = f.PlaceWith(func(b []byte) (int, error) { return readFD(fd, b) })
	} else if n, err = readFD(fd, l.rbuf); n > 0 {
		err = l.parse(l.rbuf[:n])
	}
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		l.rerr = err
	}
	return n, err
}

// readFD is read(2) with EOF as an error.
func readFD(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 0 && err == nil {
			err = io.EOF
		}
		return max(n, 0), err
	}
}
