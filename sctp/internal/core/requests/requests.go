// Package requests has what requests of the user to the peer have in common: how they fail, and
// their numbers.
package requests

import "errors"

// Errors of requests to the peer: RE-CONFIG (RFC 6525) and ASCONF (RFC 5061).
var (
	// ErrNotSupported is returned for an extension that is not in use: one of
	// the ends does not support it.
	ErrNotSupported = errors.New("core: extension not negotiated")
	// ErrDenied is the outcome of a request that the peer refused.
	ErrDenied = errors.New("core: peer refused the request")
	// ErrBusy is returned when too many requests wait for their turn.
	ErrBusy = errors.New("core: too many requests")
	// ErrTooMany is returned for a request that would not fit into a packet or
	// exceeds a limit.
	ErrTooMany = errors.New("core: request too large")
)

// Numbers numbers the user's requests to the peer. The association reports the outcome of each
// once, with its number.
type Numbers struct{ last uint32 }

// Next returns a number that is not 0.
func (r *Numbers) Next() uint32 {
	if r.last++; r.last == 0 {
		r.last++
	}
	return r.last
}
