package sockets

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/weftstack/weft/sctp"
)

// errnoError is an error that programs also know by the number that the kernel gives it.
type errnoError struct {
	err   error
	errno syscall.Errno
}

func (e *errnoError) Error() string   { return e.err.Error() }
func (e *errnoError) Unwrap() []error { return []error{e.err, e.errno} }

// withErrno adds the number.
func withErrno(err error, errno syscall.Errno) error { return &errnoError{err, errno} }

var (
	// errClosed is the error of calls on a socket that was closed here.
	errClosed = withErrno(net.ErrClosed, syscall.EBADF)

	errNoAssociation = withErrno(errors.New("no such association"), syscall.EINVAL)
	errUnsupported   = withErrno(errors.ErrUnsupported, syscall.EOPNOTSUPP)
)

// sendError translates an error of package sctp.
func sendError(err error) error {
	var abort *sctp.AbortError
	switch {
	case errors.Is(err, sctp.ErrShutdown), errors.Is(err, sctp.ErrClosed):
		return withErrno(err, syscall.EPIPE)
	case errors.Is(err, sctp.ErrEmpty), errors.Is(err, sctp.ErrNoStream):
		return withErrno(err, syscall.EINVAL)
	case errors.Is(err, sctp.ErrTimeout):
		return withErrno(err, syscall.ETIMEDOUT)
	case errors.As(err, &abort):
		return withErrno(err, syscall.ECONNRESET)
	}
	return err
}

// opError makes the error of a call. What programs compare by ==, io.EOF and EAGAIN of a read
// or write timeout, is returned as it is.
func (c *SCTPConn) opError(op string, err error) error {
	if err == nil || err == io.EOF || err == syscall.EAGAIN {
		return err
	}
	e := &net.OpError{Op: op, Net: "sctp", Err: err}
	if c != nil {
		e.Source, e.Addr = c.addrs()
	}
	return e
}

// endError returns what reads return after the end of an association for the reason err.
func endError(err error) error {
	if err == nil {
		return io.EOF
	}
	return sendError(err)
}

var errDeadline = os.ErrDeadlineExceeded
