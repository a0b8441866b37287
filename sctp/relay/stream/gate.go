package stream

import (
	"context"
	"sync"
	"time"
)

// gate is a deadline: wait returns a channel that is closed when it has passed, or when the gate was shut for ever.
type gate struct {
	mu      sync.Mutex
	timer   *time.Timer
	changes int // calls of set
	ch      chan struct{}
	shut    bool
}

// set sets the deadline; the zero time is none.
func (g *gate) set(t time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return
	}
	g.changes++
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if g.ch != nil && isClosed(g.ch) {
		g.ch = nil // those who waited know
	}
	if t.IsZero() {
		return
	}
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	d := time.Until(t)
	if d <= 0 {
		closeOnce(g.ch)
		return
	}
	change := g.changes
	g.timer = time.AfterFunc(d, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.changes == change { // no other deadline was set meanwhile
			closeOnce(g.ch)
		}
	})
}

// close shuts the gate for ever.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	if g.timer != nil {
		g.timer.Stop()
	}
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	closeOnce(g.ch)
}

// wait returns the channel.
func (g *gate) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

// passed reports whether the deadline has passed, or the gate is shut.
func (g *gate) passed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ch != nil && isClosed(g.ch)
}

// closeOnce closes ch unless it is closed. The caller excludes others.
func closeOnce(ch chan struct{}) {
	if !isClosed(ch) {
		close(ch)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// until is a context that ends when a channel is closed.
type until struct{ done <-chan struct{} }

func (u *until) Deadline() (t time.Time, ok bool) { return t, false }
func (u *until) Done() <-chan struct{}            { return u.done }
func (u *until) Value(any) any                    { return nil }

func (u *until) Err() error {
	if isClosed(u.done) {
		return context.Canceled
	}
	return nil
}
