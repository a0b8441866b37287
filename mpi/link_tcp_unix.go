//go:build linux || darwin

package mpi

import (
	"io"

	"golang.org/x/sys/unix"
)

// canReadDirect tells that readDirect works.
const canReadDirect = true

// tryWrite writes as much of bufs as the socket takes without blocking.
func (l *tcpLink) tryWrite(bufs [][]byte) (int, error) {
	l.wnow, l.wn, l.werr = bufs, 0, nil
	if err := l.raw.Write(l.wfn); err != nil {
		return 0, err
	}
	l.wnow = nil
	return l.wn, l.werr
}

// maxIov bounds the buffers of one writev.
const maxIov = 64

func (l *tcpLink) writeNow(fd uintptr) bool {
	var n int
	var err error
	for {
		if len(l.wnow) == 1 {
			n, err = unix.Write(int(fd), l.wnow[0])
		} else {
			n, err = unix.Writev(int(fd), l.wnow[:min(len(l.wnow), maxIov)])
		}
		if err != unix.EINTR {
			break
		}
	}
	if err == unix.EAGAIN {
		n, err = 0, nil
	}
	l.wn, l.werr = max(n, 0), err
	return true // never wait
}

// readDirect reads once into the buffer of the receive in progress. It returns
// false if there was nothing to read yet.
func (l *tcpLink) readDirect(fd uintptr) bool {
	f := &l.peer.flows[0]
	n, err := f.placeWith(func(b []byte) (int, error) {
		for {
			n, err := unix.Read(int(fd), b)
			if err != unix.EINTR {
				if n == 0 && err == nil {
					err = io.EOF
				}
				return max(n, 0), err
			}
		}
	})
	if err == unix.EAGAIN {
		return false
	}
	l.rn, l.rerr = n, err
	return true
}
