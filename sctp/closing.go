package sctp

import (
	"fmt"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// DefaultLinger is the default of Config.Linger.
const DefaultLinger = 2 * time.Minute

// lingerProgress is how much a peer has to acknowledge in each Config.Linger, or all that
// is left if that is less. With the default it is less than 600 bytes per second, and
// what fills a send buffer of 4 MiB is over in some two hours at the latest.
const lingerProgress = 64 << 10

// goOnClosing bounds how long a shutdown goes on in the background: if the peer's stack
// answers while its program does not read, the association and the data sent to it would stay
// for good. a.mu is held.
func (a *Association) goOnClosing(now clock.Time) {
	d := a.ep.cfg.Linger
	if d == 0 {
		d = DefaultLinger
	}
	if d < 0 || a.dead || a.closeAt != 0 {
		return
	}
	a.closeAt, a.rare.closeHad = now+clock.Time(d), a.core.Stats().Queued
}

// lookAtClosing aborts an association that was closed and has made no progress since the
// last look. a.mu is held.
func (a *Association) lookAtClosing(now clock.Time) {
	a.closeAt = 0
	left := a.core.Stats().Queued
	if left <= a.rare.closeHad-lingerProgress || left == 0 && a.rare.closeHad > 0 {
		a.goOnClosing(now)
		return
	}
	if a.dead {
		return
	}
	d := a.ep.cfg.Linger
	if d == 0 {
		d = DefaultLinger
	}
	a.rare.cause = &lingerError{d, left}
	a.core.Abort(now, []byte("closed, and what was sent was not taken in time"))
}

// lingerError is the end of an association when the peer did not complete a shutdown.
type lingerError struct {
	after time.Duration
	left  int
}

func (e *lingerError) Error() string {
	if e.left == 0 {
		return fmt.Sprintf("sctp: closed, and the peer did not end the association within %v", e.after)
	}
	return fmt.Sprintf("sctp: closed, and the peer took less than %d bytes in %v: %d were lost", lingerProgress, e.after, e.left)
}

func (e *lingerError) Is(target error) bool { return target == ErrTimeout }
func (e *lingerError) Unwrap() error        { return ErrTimeout }
