package core

import "errors"

// Errors of associations.
var (
	// ErrShutdown is returned by Send once either side began a shutdown (RFC
	// 9260, Section 9.2).
	ErrShutdown = errors.New("core: association is shutting down")
	// ErrClosed is returned by calls on an association that has ended.
	ErrClosed = errors.New("core: association is closed")
	// ErrUnreachable is the end of an association whose peer does not answer:
	// a retransmission limit was exceeded (RFC 9260, Sections 4 and 8.1).
	ErrUnreachable = errors.New("core: peer unreachable")
	// ErrStale is the end of an attempt whose cookies were always too old when
	// they arrived (RFC 9260, Section 5.2.6).
	ErrStale = errors.New("core: state cookie stale")
	// ErrPath is returned for an address that is not the peer's, or not yet
	// confirmed to be.
	ErrPath = errors.New("core: no such path")
	// ErrNoKey is returned for a shared key that there is not.
	ErrNoKey = errors.New("core: no such shared key")
	// ErrParams is returned by NewClient for unusable parameters, and by AddStreams for no streams.
	ErrParams = errors.New("core: bad parameters")
)
