package sctp

import (
	"sync"
	"time"
)

// deadline is a point in time as a channel, which may be moved while others
// wait for it.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	ch    chan struct{} // closed when the deadline has passed
}

// set moves the deadline; the zero Time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.ch // the timer fires: let it finish with this channel
	}
	d.timer = nil
	passed := false
	if d.ch == nil {
		d.ch = make(chan struct{})
	}
	select {
	case <-d.ch:
		passed = true
	default:
	}
	if t.IsZero() {
		if passed {
			d.ch = make(chan struct{})
		}
		return
	}
	if left := time.Until(t); left > 0 {
		if passed {
			d.ch = make(chan struct{})
		}
		ch := d.ch
		d.timer = time.AfterFunc(left, func() { close(ch) })
		return
	}
	if !passed {
		close(d.ch)
	}
}

// passed returns a channel that is closed once the deadline has passed.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ch == nil {
		d.ch = make(chan struct{})
	}
	return d.ch
}
