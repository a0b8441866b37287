package relay

import (
	"errors"
	"fmt"
	"net"

	"github.com/weftstack/weft/sctp/relay/frame"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrClosed is returned by operations on a closed Node or Gateway. It matches
	// net.ErrClosed.
	ErrClosed = fmt.Errorf("relay: closed: %w", net.ErrClosed)
	// ErrWouldBlock is returned by TrySend when the target has not confirmed enough yet, and
	// by TryRecv when nothing has arrived.
	ErrWouldBlock = errors.New("relay: operation would block")
	// ErrEmpty is returned for a message without a byte.
	ErrEmpty = errors.New("relay: empty message")
	// ErrConfig is returned for a configuration that contradicts itself.
	ErrConfig = errors.New("relay: bad configuration")
	// ErrAddress is returned for an address with a number 0.
	ErrAddress = errors.New("relay: bad address")
	// ErrRestarted is the end of a flow whose other end is another incarnation of the process.
	ErrRestarted = errors.New("relay: process restarted")
	// ErrUnreachable is the end of a flow whose target has not confirmed anything for the
	// peer timeout.
	ErrUnreachable = errors.New("relay: process does not answer")
	// ErrLost is the end of a flow in mode Lossy of which a gateway has lost frames: what the target has not
	// received by then never comes.
	ErrLost = errors.New("relay: data lost with a gateway")
	// ErrLimit is returned when a node has the largest number of flows, and by TrySend for
	// a message that takes more than its memory.
	ErrLimit = errors.New("relay: limit reached")
)

// RefusedError is the end of a flow that a gateway has refused.
type RefusedError struct {
	Target Address
	Reason frame.Reason
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("relay: flow to %v refused: %v", e.Target, e.Reason)
}
