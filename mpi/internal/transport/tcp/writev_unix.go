//go:build darwin || (linux && race)

package tcp

import "golang.org/x/sys/unix"

// vector is empty: unix.Writev makes its own. It tells the race detector, too, that what was written
// before it comes before what the reader does.
type vector struct{}

// writev is writev(2).
func (*vector) writev(fd int, bufs [][]byte) (int, error) { return unix.Writev(fd, bufs) }

// forget clears what the last calls have referred to.
func (d *direct) forget() { clear(d.bufs[:]) }
