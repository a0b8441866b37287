//go:build !linux && !darwin

package mpi

// tcpDirect is empty: sockets are read and written the portable way.
type tcpDirect struct{}

func (*tcpDirect) init(*tcpLink) {}

// tryWrite writes nothing: without a portable write that does not block, all
// is left to the goroutine.
func (l *tcpLink) tryWrite([][]byte) (int, error) { return 0, nil }

// readLoop receives until the connection ends.
func (l *tcpLink) readLoop() error {
	for {
		n, err := l.conn.Read(l.rbuf)
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

// poll does nothing: there is no portable read that does not block.
func (l *tcpLink) poll() bool { return false }
