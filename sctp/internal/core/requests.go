package core

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
	// ErrNoKey is returned for a shared key that there is not.
	ErrNoKey = errors.New("core: no such shared key")
	// ErrTooMany is returned for a request that would not fit into a packet or
	// exceeds a limit.
	ErrTooMany = errors.New("core: request too large")
)

// requests numbers the user's requests to the peer. The outcome of each is told
// once, by an EventRequestDone with its number.
type requests struct{ last uint32 }

// next returns a number that is not 0.
func (r *requests) next() uint32 {
	if r.last++; r.last == 0 {
		r.last++
	}
	return r.last
}

// endError is what unfinished requests are told when the association ends with
// err.
func endError(err error) error {
	if err == nil {
		return ErrClosed
	}
	return err
}

// requestDone tells the outcome of request id; 0 is nobody's.
func (a *Assoc) requestDone(id uint32, err error) {
	if id != 0 {
		a.events.push(Event{Kind: EventRequestDone, Request: id, Err: err})
	}
}
