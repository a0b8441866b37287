package wire

import "errors"

// Errors of the decoders. They are returned as they are, never wrapped, so that
// refusing a malformed packet does not allocate.
var (
	// ErrTruncated says that the bytes end before the structure does.
	ErrTruncated = errors.New("wire: truncated")
	// ErrLength says that a length field contradicts the structure: below the
	// size of its own header, or not what the fixed layout asks for.
	ErrLength = errors.New("wire: bad length field")
	// ErrType says that a decoder was given a chunk, parameter or cause of
	// another type.
	ErrType = errors.New("wire: wrong type")
	// ErrNoUserData says that a DATA or I-DATA chunk carries no user data
	// (RFC 9260, Section 3.3.10.9).
	ErrNoUserData = errors.New("wire: no user data")
	// ErrValue says that a field has a value that its RFC rules out.
	ErrValue = errors.New("wire: bad field value")
)
