package sctp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrClosed is returned by operations on a closed transport, endpoint or
	// association. It matches net.ErrClosed.
	ErrClosed error = closedError{}
	// ErrWouldBlock is returned by TrySend and its like when the send buffer is
	// full, and by TryRecv when there is nothing to receive.
	ErrWouldBlock = errors.New("sctp: send buffer is full")
	// ErrShutdown is returned by sends after either side began a graceful
	// shutdown (RFC 9260, Section 9.2).
	ErrShutdown = errors.New("sctp: association is shutting down")
	// ErrNoStream is returned for a stream number outside the negotiated
	// range or in the midst of a reset.
	ErrNoStream = errors.New("sctp: no such stream")
	// ErrEmpty is returned for a message without a byte, which SCTP cannot
	// carry (RFC 9260, Section 6.2).
	ErrEmpty = errors.New("sctp: empty message")
	// ErrExists is returned by Connect when there is an association with that
	// peer already.
	ErrExists = errors.New("sctp: association exists")
	// ErrConfig is returned for a Config that contradicts itself.
	ErrConfig = errors.New("sctp: bad configuration")
	// ErrAddress is returned for an address that no association can have.
	ErrAddress = errors.New("sctp: bad address")
	// ErrMessageTooLong is returned when SendOptions.Header exceeds MaxHeader, and
	// for a message that does not fit one chunk with Config.NoFragmentation.
	ErrMessageTooLong = errors.New("sctp: message or header too long")
	// ErrTimeout is the end of an association that got no answer: INIT or
	// COOKIE ECHO retransmissions exhausted, or the peer unreachable (RFC
	// 9260, Sections 4 and 8.1). It is a net.Error with Timeout() true.
	ErrTimeout error = timeoutError{}
	// ErrRefused is the end of an association attempt that the peer answered
	// with ABORT, or its host by ICMP: nothing uses the UDP port. It matches
	// syscall.ECONNREFUSED then.
	ErrRefused = errors.New("sctp: association refused")
	// ErrPortInUse is returned by Listen when the SCTP port is taken.
	ErrPortInUse = errors.New("sctp: port in use")
	// ErrLimit is returned when a limit is reached: of the ports or associations
	// of a transport, or of the streams of an association.
	ErrLimit = errors.New("sctp: limit reached")
	// ErrExpired is given to SendOwner.Released and in NotifySendFailed for a
	// message abandoned by its partial reliability policy (RFC 3758).
	ErrExpired = errors.New("sctp: message abandoned")
	// ErrDenied is returned for a request that the peer refused (RFC 6525, RFC
	// 5061).
	ErrDenied = errors.New("sctp: peer refused the request")
	// ErrNoKey is returned for a shared key that does not exist or is in use.
	ErrNoKey = errors.New("sctp: no such key")
	// ErrMessageOpen is returned by sends on a stream on which a MessageWriter has
	// not ended its message.
	ErrMessageOpen = errors.New("sctp: a message of the stream has not ended")
	// ErrOptions is returned for SendOptions that do not go with the call.
	ErrOptions = errors.New("sctp: bad send options")
	// ErrRestart is given to SendOwner.Released, and returned by calls that wait for the
	// peer, when the peer has restarted: what it had not acknowledged is lost.
	ErrRestart = errors.New("sctp: peer restarted")
	// ErrBusy is returned when too many requests wait for the peer's answer.
	ErrBusy = errors.New("sctp: too many requests")
	// ErrNotSupported is returned for a feature that the peer did not
	// negotiate or the platform lacks.
	ErrNotSupported = errors.New("sctp: not supported")
)

type closedError struct{}

func (closedError) Error() string        { return "sctp: closed" }
func (closedError) Is(target error) bool { return target == net.ErrClosed }

type timeoutError struct{}

func (timeoutError) Error() string        { return "sctp: timed out" }
func (timeoutError) Timeout() bool        { return true }
func (timeoutError) Temporary() bool      { return false }
func (timeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// AbortError is the end of an association by ABORT.
type AbortError struct {
	// Cause is the first error cause code of the ABORT chunk, 0 if it carried
	// none (RFC 9260, Section 3.3.10).
	Cause uint16
	// Reason is the text or information of that cause, possibly empty.
	Reason string
	// ByPeer tells whether the peer aborted, as opposed to this side.
	ByPeer bool
}

// Error implements error.
func (e *AbortError) Error() string {
	who := "locally"
	if e.ByPeer {
		who = "by peer"
	}
	if e.Reason == "" {
		return fmt.Sprintf("sctp: aborted %s, cause %d", who, e.Cause)
	}
	return fmt.Sprintf("sctp: aborted %s, cause %d: %q", who, e.Cause, e.Reason)
}

// refusedError is the peer's answer to an attempt to open an association: an ABORT, or an
// ICMP message of its host.
type refusedError struct{ reason error }

func (e *refusedError) Error() string { return ErrRefused.Error() + ": " + e.reason.Error() }
func (e *refusedError) Unwrap() error { return e.reason }
func (e *refusedError) Is(target error) bool {
	return target == ErrRefused || target == syscall.ECONNREFUSED
}

// connectError is why an association with a peer could not be opened.
type connectError struct {
	peer Addr
	err  error
}

func (e *connectError) Error() string {
	return fmt.Sprintf("sctp: connect %v: %s", e.peer, strings.TrimPrefix(e.err.Error(), "sctp: "))
}
func (e *connectError) Unwrap() error { return e.err }

// noAnswerError is the end of an attempt to open an association that was not answered, or
// not in time.
type noAnswerError struct {
	after time.Duration
	sent  uint64 // packets, INITs that is, unless one was answered
	some  bool   // the peer has answered the INIT
	err   error  // ErrTimeout, or that of the context
}

// noAnswer makes the error of an attempt to open a that ends with err. a.mu is held.
func (a *Association) noAnswer(began clock.Time, err error) error {
	after := time.Duration(a.t.now() - began)
	return &noAnswerError{after.Round(time.Millisecond), a.core.Stats().PacketsSent, a.core.PeerTag() != 0, err}
}

func (e *noAnswerError) Error() string {
	what := fmt.Sprintf("no answer in %v (%d INITs)", e.after, e.sent)
	if e.some {
		what = fmt.Sprintf("no association in %v, though the peer answered the INIT (%d packets)", e.after, e.sent)
	}
	if !e.Timeout() {
		what += ": " + e.err.Error()
	}
	return what
}

func (e *noAnswerError) Unwrap() error   { return e.err }
func (e *noAnswerError) Timeout() bool   { return e.err != context.Canceled }
func (e *noAnswerError) Temporary() bool { return false }
func (e *noAnswerError) Is(target error) bool {
	return e.Timeout() && (target == ErrTimeout || target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded)
}
