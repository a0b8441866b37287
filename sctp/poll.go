package sctp

import (
	"time"

	"github.com/weftstack/weft/internal/poll"
)

// Poll makes one pass over the sockets without blocking: it receives what is
// there, dispatches and answers it, and reports whether there was anything.
// Goroutines that wait for something an upcall will do call it in a loop
// before they park. It always reports false where sockets cannot be polled.
func (t *Transport) Poll() bool {
	t.suppression.replaceReader(t)
	return t.pass()
}

// CanPoll reports whether Poll reads sockets: not where all are the caller's, or the
// system has no call that does not wait.
func (t *Transport) CanPoll() bool { return t.sockets().canPoll }

// pass is Poll for those who do not go on with it, too.
func (t *Transport) pass() (came bool) {
	set := t.sockets()
	for _, s := range set.list {
		if s.conn.CanPoll() && s.poll(false) {
			came = true
		}
	}
	if set.canPoll {
		t.suppression.notePoll(t, came)
	}
	return came
}

// look is a pass over the sockets by one that will be back soon: the readers stay
// asleep. One goroutine at a time makes it, which bounds how deep those nest that
// upcalls make.
func (t *Transport) pollAsSender() {
	if !t.sockets().canPoll || !t.senderPolls.CompareAndSwap(false, true) {
		return
	}
	if !t.suppression.on.Load() {
		t.suppression.set(t, true)
	}
	t.pass()
	t.senderPolls.Store(false)
}

// readAll is one pass over the sockets that says nothing about whether polling
// goes on.
func (t *Transport) readAll() {
	for _, s := range t.sockets().list {
		if s.conn.CanPoll() {
			s.poll(true)
		}
	}
}

// DefaultBusyPoll is the default of TransportConfig.BusyPoll: about what it takes
// to wake a goroutine up on another processor.
const DefaultBusyPoll = 50 * time.Microsecond

// SetBusyRead bounds how long the goroutines that read the sockets poll for more
// datagrams before they sleep, which is TransportConfig.BusyPoll if it is not called;
// if limit is not positive they do not poll. They do where datagrams come sooner than
// they wake up for them, as those do that nobody waits for: of a peer that reads memory
// here, or that an upcall answers. It may be called at any time.
func (t *Transport) SetBusyRead(limit time.Duration) {
	t.server.SetLimit(limit)
}

// A Wait is a wait for something that an upcall will do, which begins with polling
// where that makes waits shorter.
type Wait struct {
	t *Transport
	w poll.Wait
}

// BeginWait notes the begin of a wait.
func (t *Transport) BeginWait() (w Wait) {
	w.t = t
	if t.sockets().canPoll {
		var ok bool
		if w.w, ok = t.waits.Start(); !ok {
			w.w = t.waits.Begin(int64(t.now()))
		}
	}
	return w
}

// End notes that what was waited for is there. A wait that ends otherwise tells
// nothing, and is just left.
func (w Wait) End() {
	if w.w.Counts() {
		w.w.End(int64(w.t.now()))
	}
}

// Poll makes the calling goroutine read the sockets itself until ready reports
// true, or the time is up that TransportConfig.BusyPoll allows, which is more while
// datagrams come: ready should tell of a context that is done, too. It returns at once
// where polling is off or does not pay, or enough goroutines do it already. It
// reports whether ready did. A goroutine calls it once before it parks.
func (w Wait) Poll(ready func() bool) bool {
	ok := w.poll(ready)
	if !ok && w.w.Budget > 0 {
		w.t.resumeReaders()
	}
	return ok
}

// poll is Poll for a caller that wakes the readers itself before it parks.
func (w Wait) poll(ready func() bool) bool {
	t := w.t
	if w.w.Budget == 0 || !t.spinning.Enter() {
		return false
	}
	defer t.spinning.Leave()
	return t.loop.Spin(&w.w, ready, nil)
}

const (
	// yieldEvery is after how many polls of its sockets, at 0.3 µs, a spinning goroutine lets
	// others run, and yieldFull where each processor has one that spins.
	yieldEvery, yieldFull = 64, 8
)

// initPolling sets how goroutines poll the sockets, and for how long at most before they park.
func (t *Transport) initPolling(limit time.Duration) {
	t.waits.InitExtending(limit)
	t.loop = poll.Loop{Pass: t.Poll, Now: t.nanoseconds, ClockEvery: poll.ClockEvery, Prompt: true,
		YieldEvery: yieldEvery, YieldFull: yieldFull}
	t.server.Now = t.nanoseconds
	t.SetBusyRead(limit)
}

// nanoseconds is now for package poll.
func (t *Transport) nanoseconds() int64 { return int64(t.now()) }

// over reports whether the time of a spin is up. What came, if not all that is waited
// for, gives it more.
func (w *Wait) over(came bool) bool {
	now := int64(w.t.now())
	if came {
		w.w.Renew(now)
	}
	return w.w.Over(now)
}
