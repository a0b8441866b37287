package sctp

import (
	"sync/atomic"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core"
)

// anyStream is the stream of a waiter that takes what comes.
const anyStream = core.AnyStream

// waiter is a goroutine that waits. Waiters belong to one waitList for good and
// are reused, so that waiting does not allocate.
type waiter struct {
	ch           chan struct{} // of capacity 1
	stream       int
	next         *waiter
	listed       bool
	parkedLeader atomic.Pointer[leadership] // which it leads, parked
	leading      atomic.Bool                // it leads, parked or not
}

// waitList is a FIFO of waiters, guarded by a lock of its owner.
type waitList struct {
	head, tail *waiter
	free       *waiter
}

// add appends a waiter. The caller unlocks, waits for w.ch or something else,
// locks, and gives w back with recycle.
func (l *waitList) add(stream int) *waiter {
	w := l.free
	if w != nil {
		l.free, w.next = w.next, nil
		select {
		case <-w.ch: // a wake-up that came after its owner had left
		default:
		}
	} else {
		w = &waiter{ch: make(chan struct{}, 1)}
	}
	w.stream, w.listed = stream, true
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	return w
}

// recycle takes w back, and off the list if it is still on it. It reports
// whether w had been taken off, that is, woken.
func (l *waitList) recycle(w *waiter) (woken bool) {
	woken = !w.listed
	if w.listed {
		l.remove(w)
	}
	w.next, l.free = l.free, w
	return woken
}

func (l *waitList) remove(w *waiter) {
	var prev *waiter
	for p := l.head; p != w; p = p.next {
		prev = p
	}
	l.unlink(prev, w)
}

func (l *waitList) unlink(prev, w *waiter) {
	if prev == nil {
		l.head = w.next
	} else {
		prev.next = w.next
	}
	if l.tail == w {
		l.tail = prev
	}
	w.next, w.listed = nil, false
}

// wakeList holds waiters taken off a list, to be woken without the lock.
type wakeList struct {
	some [4]*waiter
	more []*waiter
	n    int
}

func (k *wakeList) add(w *waiter) {
	if k.n < len(k.some) {
		k.some[k.n] = w
		k.n++
	} else {
		k.more = append(k.more, w)
	}
}

// wake wakes them. No lock is held.
func (k *wakeList) wake() {
	for _, w := range k.some[:k.n] {
		w.wake()
	}
	for _, w := range k.more {
		w.wake()
	}
}

func (w *waiter) wake() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
	if l := w.parkedLeader.Load(); l != nil {
		l.demote(w)
	} else if !w.leading.Load() {
		poll.NoteWoken()
	}
}

// takeFirst moves the first waiter to k.
func (l *waitList) takeFirst(k *wakeList) {
	if w := l.head; w != nil {
		l.unlink(nil, w)
		k.add(w)
	}
}

// takeAll moves every waiter to k.
func (l *waitList) takeAll(k *wakeList) {
	for l.head != nil {
		l.takeFirst(k)
	}
}

// takeReadable moves to k the first waiter for any stream, if any is readable,
// and those for streams that are.
func (l *waitList) takeReadable(k *wakeList, any bool, readable func(stream uint16) bool) {
	var prev *waiter
	for w := l.head; w != nil; {
		next := w.next
		take := any && w.stream == anyStream
		if take {
			any = false
		} else if w.stream != anyStream {
			take = readable(uint16(w.stream))
		}
		if take {
			l.unlink(prev, w)
			k.add(w)
		} else {
			prev = w
		}
		w = next
	}
}
