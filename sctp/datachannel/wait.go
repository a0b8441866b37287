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
	list []waiting
}

// waiting is a goroutine that waits. A sender waits for room for n bytes on channel c.
type waiting struct {
	w *sctp.Waiter
	c *Channel
	n int
}

// wakeOne wakes the goroutine that has waited longest, wakeAll all of them. They leave the list
// themselves.
func (l *waitList) wakeOne() {
	if len(l.list) > 0 {
		l.list[0].w.Wake()
	}
}

func (l *waitList) wakeAll() {
	for _, x := range l.list {
		x.w.Wake()
	}
}

// wakeSenders wakes the senders whose message there is room for, or whose channel is closed. mu is
// held.
func (s *Session) wakeSenders() {
	for _, x := range s.senders.list {
		if x.c.state >= Closing || x.c.hasRoom(x.n) {
			x.w.Wake()
		}
	}
}

// wait blocks until the caller is woken by l, which may be for no reason, or ctx is done, and
// returns its error. mu is held, but not meanwhile.
func (s *Session) wait(ctx context.Context, l *waitList, c *Channel, n int) error {
	var w *sctp.Waiter
	if n := len(s.freeWaits); n > 0 {
		w, s.freeWaits = s.freeWaits[n-1], s.freeWaits[:n-1]
	} else {
		w = s.assoc.Endpoint().Transport().NewWaiter()
	}
	l.list = append(l.list, waiting{w, c, n})
	s.unlock()
	woken := w.Wait(ctx.Done())
	s.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(x waiting) bool { return x.w == w })
	if len(s.freeWaits) < maxFreeWaits {
		s.freeWaits = append(s.freeWaits, w)
	}
	if !woken {
		return ctx.Err()
	}
	return nil
}
