//go:build !linux && !darwin

package tcp

import "net"

// direct is empty: sockets are read and written the portable way.
type direct struct{}

func (*direct) init(*Link) {}

// writeCurrent writes the current batch if it may wait. Without a portable write that does not block, nothing is
// written else, and all left to the goroutine.
func (l *Link) writeCurrent(waits bool) error {
	if !waits {
		return nil
	}
	var to [maxRuns][]byte
	for {
		bufs := net.Buffers(to[:l.current.next(to[:])])
		if len(bufs) == 0 {
			return nil
		}
		n, err := bufs.WriteTo(l.Conn)
		if err != nil {
			return err
		}
		l.current.written(int(n))
	}
}

// readLoop receives until the connection ends.
func (l *Link) readLoop() error {
	for {
		n, err := l.Conn.Read(l.rbuf)
		l.rmu.Lock()
		ferr := l.parse(l.rbuf[:n])
		l.rmu.Unlock()
		if ferr != nil {
			return ferr
		}
		if err != nil {
			return err
		}
	}
}

// Poll does nothing: there is no portable read that does not block.
func (l *Link) Poll() bool { return false }
