package udpio

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// MaxFailures is how many errors in a row, of reads or writes, end a connection of the caller's that
// has no other way to say that it is of no more use.
const MaxFailures = 100

// IsEnd reports whether err, of a read or write, is the end of the connection. Errors of the system's
// sockets and passed deadlines are not; failures counts others in a row.
func IsEnd(err error, failures *int) bool {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	var errno syscall.Errno
	var timeout interface{ Timeout() bool }
	if errors.As(err, &errno) || errors.As(err, &timeout) && timeout.Timeout() {
		*failures = 0
		return false
	}
	*failures++
	return *failures >= MaxFailures
}
