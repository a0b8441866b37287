package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// DefaultConnectTimeout is how long Connect, ConnectTCP and CMID.Connect wait for an
// answer if neither ConnParams.Timeout nor the context says how long, and CMID's other
// methods if their timeout is 0.
const DefaultConnectTimeout = 10 * time.Second

// limit returns the context of a connection setup: one time limit for all its steps.
// def is the limit if neither Timeout nor ctx has one.
func (p *ConnParams) limit(ctx context.Context, def time.Duration) (context.Context, context.CancelFunc) {
	switch _, limited := ctx.Deadline(); {
	case p.Timeout > 0:
		return context.WithTimeout(ctx, p.Timeout)
	case p.Timeout < 0 || limited:
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, def)
}

// attempt is a connection setup, for the errors that it may end with.
type attempt struct {
	to    string // the peer's address
	since time.Time
}

func attemptAt(to string) attempt { return attempt{to, time.Now()} }

// failed makes the error of a setup that ended with err while it waited for what.
func (a attempt) failed(what string, err error) error {
	if e, ok := err.(*setupError); ok {
		return e
	}
	text := strings.TrimPrefix(err.Error(), "verbs: ")
	to := " to " + a.to
	if strings.Contains(text, a.to) {
		to = "" // the layer below has named it
	}
	if err == context.DeadlineExceeded || err == context.Canceled {
		text = fmt.Sprintf("no %s after %v: %v", what, time.Since(a.since).Round(time.Millisecond), err)
	}
	return &setupError{explained{"verbs: connect" + to + ": " + text, err}}
}

// setupError is an error of a connection setup.
type setupError struct{ explained }

// cancelWith has cancel called when a life ends: its owner has closed the queue pair, and
// nothing more is to be set up. The function it returns puts an end to that.
func (l *life) cancelWith(cancel context.CancelFunc) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-l.done:
			cancel()
		case <-over:
		}
	}()
	return func() { close(over) }
}

// ended reports whether a life is over.
func (l *life) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// failed is attempt.failed for a setup that the owner of the queue pair may have ended: it
// returns that then, whatever the setup saw of it first, be it the context or the connection.
func (qp *QP) failed(l *life, t attempt, what string, err error) error {
	if ended := qp.Err(); l.ended() && (errors.Is(err, context.Canceled) || errors.Is(ended, ErrDisconnected)) {
		err = ended
	}
	return t.failed(what, err)
}
