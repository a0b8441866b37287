package sockets

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/weftstack/weft/sctp"
)

// Write is SCTPWrite with the default SndRcvInfo.
func (c *SCTPConn) Write(b []byte) (int, error) { return c.SCTPWrite(b, nil) }

// SCTPWrite sends b as one message, as info says, or what SetDefaultSentParam has set if info is
// nil. It copies b. It blocks while the send buffer is full, until the write deadline passes
// (os.ErrDeadlineExceeded), the time of SetWriteTimeout has passed or SetNonBlock was called
// (syscall.EAGAIN), or Close is called; it does not wait for the acknowledgement.
//
// On a one-to-many socket info.AssocID names the association. Errors are syscall.EPIPE and
// sctp.ErrShutdown after a shutdown began, syscall.EINVAL for an empty message, a stream that
// was not negotiated (sctp.ErrNoStream), a flag that is not known or an association that does
// not exist, and the reason of the end of the association.
func (c *SCTPConn) SCTPWrite(b []byte, info *SndRcvInfo) (int, error) {
	if err := c.send(b, info); err != nil {
		return 0, c.opError("write", err)
	}
	return len(b), nil
}

const knownFlags = SCTP_UNORDERED | SCTP_ABORT | SCTP_SACK_IMMEDIATELY | SCTP_EOF | linuxEOF

func (c *SCTPConn) send(b []byte, info *SndRcvInfo) error {
	c.mu.Lock()
	if info == nil {
		info = &c.defaults
	}
	i := *info
	failures, nonblock, timeout := c.events&SCTP_EVENT_SEND_FAILURE != 0, c.nonblock, c.writeTimeout
	c.mu.Unlock()
	as, err := c.find(SCTPAssocID(i.AssocID))
	if err != nil {
		return err
	}
	if i.Flags&^knownFlags != 0 {
		return withErrno(fmt.Errorf("flags %#x: known are %#x", i.Flags, knownFlags), syscall.EINVAL)
	}
	if c.write.passed() {
		return errDeadline
	}
	switch {
	case i.Flags&SCTP_ABORT != 0:
		as.a.Abort(string(b))
		return nil
	case i.Flags&(SCTP_EOF|linuxEOF) != 0:
		if len(b) > 0 {
			return withErrno(fmt.Errorf("SCTP_EOF with a message of %d bytes", len(b)), syscall.EINVAL)
		}
		as.a.Shutdown(ended) // goes on in the background
		return nil
	}
	opts := sctp.SendOptions{
		Stream: i.Stream, PPID: c.set.PPID.swap(i.PPID), Lifetime: milliseconds(i.TTL),
		Unordered: i.Flags&SCTP_UNORDERED != 0, Immediate: i.Flags&SCTP_SACK_IMMEDIATELY != 0,
	}
	if failures && len(b) > 0 {
		o := &unsent{as: as, info: i, data: append([]byte(nil), b...)}
		b, opts.Owner = o.data, o
	}
	if err = as.a.TrySend(b, opts); err == nil || !errors.Is(err, sctp.ErrWouldBlock) {
		return c.writeError(err)
	}
	if nonblock {
		return syscall.EAGAIN
	}
	ctx := c.write.context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err = as.a.Send(ctx, b, opts)
	if timeout > 0 && errors.Is(err, context.DeadlineExceeded) && !c.write.passed() {
		return syscall.EAGAIN
	}
	return c.writeError(err)
}

// writeError translates an error of Association.Send.
func (c *SCTPConn) writeError(err error) error {
	switch {
	case err == nil:
		return nil
	case c.isClosed():
		return errClosed
	}
	return sendError(err)
}

// ended is a context that is done.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// unsent owns a message whose failure the program wants to be told.
type unsent struct {
	as   *association
	info SndRcvInfo // PPID in the order of the socket
	data []byte
}

// Released implements sctp.SendOwner.
func (u *unsent) Released(err error) {
	if err == nil {
		return
	}
	n := &SendFailed{AssocID: u.as.id, Info: u.info, Data: u.data, Flags: SCTP_DATA_SENT, Error: uint32(causeOf(err))}
	if errors.Is(err, sctp.ErrExpired) {
		n.Flags = SCTP_DATA_UNSENT // see SndRcvInfo.TTL
	}
	u.as.notify(SCTP_EVENT_SEND_FAILURE, n)
}

// timeval returns a time as a duration.
func timeval(tv syscall.Timeval) time.Duration {
	return time.Duration(tv.Sec)*time.Second + time.Duration(tv.Usec)*time.Microsecond
}
