//go:build !linux && !darwin

package tcp

// direct is empty: sockets are read and written the portable way.
type direct struct{}

func (*direct) init(*Link) {}

// tryWrite writes nothing: without a portable write that does not block, all
// is left to the goroutine.
func (l *Link) tryWrite([][]byte) (int, error) { return 0, nil }

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
