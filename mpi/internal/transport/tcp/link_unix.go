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

	got bool // poll found something; guarded by rmu

	// For the writing goroutine.
	waits bool  // argument of write
	err   error // its result
	bufs  [maxRuns][]byte
	vector
}

func (d *direct) init(l *Link) { d.read, d.poll, d.write = l.readAll, l.readOnce, l.writeNow }

const (
	// minInPlace is the least rest of a body that is read directly into the receive buffer, in
	// bytes.
	minInPlace = 32 << 10
)

// writeCurrent writes the current batch, or if it may not wait, as much of it as the socket takes.
func (l *Link) writeCurrent(waits bool) error {
	d := &l.direct
	d.waits, d.err = waits, nil
	if err := l.raw.Write(d.write); err != nil {
		return err
	}
	return d.err
}

// writeNow writes until the socket takes no more. It returns false to be called again when it does.
func (l *Link) writeNow(fd uintptr) bool {
	d := &l.direct
	defer d.forget()
	for {
		bufs := d.bufs[:l.current.next(d.bufs[:])]
		if len(bufs) == 0 {
			return true
		}
		n, err := d.writev(int(fd), bufs)
		switch {
		case err == nil:
			l.current.written(n)
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return !d.waits
		default:
			d.err = err
			return true
		}
	}
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
