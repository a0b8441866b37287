package datachannel

import "errors"

// Errors that callers branch on with errors.Is. Those of package sctp come too: the reason why
// the association ended, and sctp.ErrShutdown after a shutdown began.
var (
	// ErrClosed is returned by operations on a channel that either side has closed, and on a
	// session that has ended gracefully.
	ErrClosed = errors.New("datachannel: closed")
	// ErrConfig is returned for a Config that cannot be used.
	ErrConfig = errors.New("datachannel: bad configuration")
	// ErrOptions is returned for Options that cannot be had.
	ErrOptions = errors.New("datachannel: bad options")
	// ErrInUse is returned by Open for the number of a channel that there is already.
	ErrInUse = errors.New("datachannel: stream is in use")
	// ErrNoStream is returned by Open when the association has no stream for another channel,
	// and the peer adds none.
	ErrNoStream = errors.New("datachannel: no stream is left")
	// ErrMessageTooLong is returned for a message that is longer than the peer takes, and is
	// the end of a channel on which a message came that is longer than MaxMessageSize.
	ErrMessageTooLong = errors.New("datachannel: message too long")
	// ErrWouldBlock is returned by TrySend when the send buffer is full.
	ErrWouldBlock = errors.New("datachannel: send buffer is full")
	// ErrUnread is the end of a channel of which more was unread than Config.MaxUnread.
	ErrUnread = errors.New("datachannel: too much is unread")
	// ErrAssembly is the end of a channel with whose incomplete message there were more bytes
	// of such messages than Config.AssemblyBuffer.
	ErrAssembly = errors.New("datachannel: too many bytes of incomplete messages")
	// ErrProtocol is the end of a channel on which the peer violated RFC 8831 or RFC 8832.
	ErrProtocol = errors.New("datachannel: protocol violation")
)
