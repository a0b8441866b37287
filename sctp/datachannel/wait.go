package datachannel

import (
	"context"
	"slices"

	"github.com/weftstack/weft/sctp"
)

// maxFreeWaits is how many unused waiters a session keeps for later.
const maxFreeWaits = 16

// waitList has the waiters of goroutines that wait for one thing. It is guarded by Session.mu.
type waitList struct {
	list []*sctp.Waiter
}

// wakeOne wakes the goroutine that has waited longest, wakeAll all of them. They leave the list
// themselves.
func (l *waitList) wakeOne() {
	if len(l.list) > 0 {
		l.list[0].Wake()
	}
}

func (l *waitList) wakeAll() {
	for _, w := range l.list {
		w.Wake()
	}
}

// wait blocks until the caller is woken by l, which may be for no reason, or ctx is done, and
// returns its error. mu is held, but not meanwhile.
func (s *Session) wait(ctx context.Context, l *waitList) error {
	var w *sctp.Waiter
	if n := len(s.freeWaits); n > 0 {
		w, s.freeWaits = s.freeWaits[n-1], s.freeWaits[:n-1]
	} else {
		w = s.assoc.Endpoint().Transport().NewWaiter()
	}
	l.list = append(l.list, w)
	s.unlock()
	woken := w.Wait(ctx.Done())
	s.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(x *sctp.Waiter) bool { return x == w })
	if len(s.freeWaits) < maxFreeWaits {
		s.freeWaits = append(s.freeWaits, w)
	}
	if !woken {
		return ctx.Err()
	}
	return nil
}
