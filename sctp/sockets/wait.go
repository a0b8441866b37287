package sockets

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/sctp"
)

var background = context.Background()

// waiters are the goroutines that wait for something of one socket, under its mutex.
type waiters struct {
	t             *sctp.Transport
	waiting, idle []*sctp.Waiter
}

// wait unlocks mu, blocks until wake is called and locks mu again. It may also return for no
// reason.
func (w *waiters) wait(mu *sync.Mutex) {
	var x *sctp.Waiter
	if n := len(w.idle); n > 0 {
		x, w.idle = w.idle[n-1], w.idle[:n-1]
	} else {
		x = w.t.NewWaiter()
	}
	w.waiting = append(w.waiting, x)
	mu.Unlock()
	x.Wait(nil)
	mu.Lock()
	w.waiting = slices.DeleteFunc(w.waiting, func(y *sctp.Waiter) bool { return x == y })
	w.idle = append(w.idle, x)
}

// wake ends all waits. The mutex is held.
func (w *waiters) wake() {
	for _, x := range w.waiting {
		x.Wake()
	}
}

// readLimit is a deadline for goroutines in waiters. The mutex of the socket guards it.
type readLimit struct {
	at    time.Time
	timer *time.Timer
}

// set moves the deadline; wake is called when it passes, without the mutex.
func (d *readLimit) set(t time.Time, wake func()) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = t
	if left := time.Until(t); !t.IsZero() && left > 0 {
		d.timer = time.AfterFunc(left, wake)
	}
}

func (d *readLimit) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// writeLimit is a deadline as a channel, for goroutines in sctp.Association.Send.
type writeLimit struct {
	mu    sync.Mutex
	ch    chan struct{} // closed when the deadline has passed
	timer *time.Timer
	moves int // how often the deadline was set
	over  bool
}

// set moves the deadline; the zero Time is never.
func (d *writeLimit) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moves++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	left := time.Until(t)
	if d.over && (t.IsZero() || left > 0) {
		d.ch, d.over = make(chan struct{}), false
	}
	switch {
	case t.IsZero():
	case left <= 0:
		d.expire()
	default:
		move := d.moves
		d.timer = time.AfterFunc(left, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.moves == move {
				d.expire()
			}
		})
	}
}

// expire closes the channel. d.mu is held.
func (d *writeLimit) expire() {
	if d.ch == nil {
		d.ch = make(chan struct{})
	}
	if !d.over {
		d.over = true
		close(d.ch)
	}
}

// passed reports whether the deadline has passed.
func (d *writeLimit) passed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// context returns a context that is done when the deadline passes.
func (d *writeLimit) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ch == nil {
		d.ch = make(chan struct{})
	}
	return until(d.ch)
}

// until is a context that is done when the channel is closed.
type until <-chan struct{}

func (u until) Deadline() (time.Time, bool) { return time.Time{}, false }
func (u until) Done() <-chan struct{}       { return u }
func (u until) Value(any) any               { return nil }
func (u until) Err() error {
	select {
	case <-u:
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}
