package sctp

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// request is one that the peer has to answer. Its waiter is woken with the
// outcome in err.
type request struct {
	waiter
	err error
}

// ask makes a request of the core and waits for the outcome.
func (a *Association) ask(ctx context.Context, do func(*core.Assoc, clock.Time) (uint32, error)) error {
	a.mu.Lock()
	if a.closing {
		a.mu.Unlock()
		return ErrClosed
	}
	id, err := do(a.core, a.t.now())
	if err != nil {
		a.mu.Unlock()
		return coreError(err)
	}
	r := &request{waiter: waiter{ch: make(chan struct{}, 1)}}
	if a.requests == nil {
		a.requests = map[uint32]*request{}
	}
	a.requests[id] = r
	w := a.drainAndUnlock()
	a.goCallbacks(w | a.flush())
	select {
	case <-r.ch:
		return r.err
	case <-ctx.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.requests[id] != r { // answered meanwhile
			return r.err
		}
		delete(a.requests, id)
		return ctx.Err()
	}
}

// answer ends request id. a.mu is held.
func (a *Association) answer(id uint32, err error, k *wakeList) {
	if r := a.requests[id]; r != nil {
		delete(a.requests, id)
		r.err = err
		k.add(&r.waiter)
	}
}

// answerAll ends the requests that are left. a.mu is held.
func (a *Association) answerAll(err error, k *wakeList) {
	if err == nil {
		err = ErrClosed
	}
	for id := range a.requests {
		a.answer(id, err, k)
	}
}

// ResetStreams restarts the sequence numbers of outgoing streams at 0, all of them if none is
// named (RFC 6525, Section 5.1.2); the peer's program is notified by NotifyStreamsReset.
// Messages sent before go under the old numbers, later ones wait for the reset. It blocks until
// the peer has answered or ctx is done, and returns the error of ctx then; the request goes on.
//
// Other errors are ErrNotSupported, also before the association is established, ErrDenied if
// the peer refused, ErrBusy with too many requests waiting, ErrNoStream, ErrRestart if the peer
// has restarted, ErrShutdown after a shutdown began, ErrClosed after [Association.Close], and
// the reason of the end as of [Association.Err].
//
// A list of more than 200 streams takes a request to the peer, and a round trip,
// per 200, one after the other. The first one that fails ends it with its error;
// the notifications NotifyOutStreamsReset tell which streams were reset by then,
// and which were not.
func (a *Association) ResetStreams(ctx context.Context, streams ...uint16) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.ResetStreams(now, streams) })
}

// ResetIncomingStreams asks the peer to reset streams that it sends on, all of them if none is
// named (RFC 6525, Section 5.1.3). Otherwise it behaves like [Association.ResetStreams].
func (a *Association) ResetIncomingStreams(ctx context.Context, streams ...uint16) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.ResetIncoming(now, streams) })
}

// ResetAll restarts the sequence numbers of all streams and the TSNs in both directions (RFC
// 6525, Section 5.1.4). Otherwise it behaves like [Association.ResetStreams].
func (a *Association) ResetAll(ctx context.Context) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.ResetAssoc(now) })
}

// AddStreams asks for out more outgoing streams and in more incoming ones (RFC 6525, Sections
// 5.1.5 and 5.1.6), which may be used once it returns nil. It returns ErrLimit if there would
// be more than 65,535 outgoing streams, or more incoming ones than Config.InStreams, and
// ErrNoStream if both numbers are 0. Otherwise it behaves like [Association.ResetStreams].
func (a *Association) AddStreams(ctx context.Context, out, in uint16) error {
	if out == 0 && in == 0 {
		return fmt.Errorf("%w: AddStreams of 0 outgoing and 0 incoming ones", ErrNoStream)
	}
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.AddStreams(now, out, in) })
}

// SetStreamPriority sets the value by which the scheduler treats an outgoing stream (RFC 8260,
// Section 4.3.3): its priority with PriorityBased, where the smallest value goes first, and its
// weight with WeightedFair. Other schedulers ignore it. It does not block, and returns
// ErrNoStream if there is no such stream.
func (a *Association) SetStreamPriority(stream, value uint16) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return coreError(a.core.SetStreamValue(stream, value))
}

// PauseStream holds back the messages of one incoming stream, in upcall mode and in receives
// from any stream, or releases them again if on is false. Messages of other streams go on. Held
// messages count against the receive buffer. It does not block.
func (a *Association) PauseStream(stream uint16, on bool) {
	a.mu.Lock()
	a.core.PausePieces(stream, on)
	if a.drainAndUnlock() != 0 {
		a.goCallbacks(deferredEvents)
	}
}
