package sctp

import (
	"time"

	"github.com/weftstack/weft/internal/poll"
)

// Poll makes one pass over the sockets: it receives the datagrams that are there, has
// associations handle and answer them, makes the upcalls and reports whether there were
// any. It does not wait for datagrams. A goroutine that waits for an upcall may call it in a
// loop before it parks; [Wait.Poll] is that loop, for as long as it pays. Where sockets cannot
// be polled, see [Transport.CanPoll], Poll reports false.
func (t *Transport) Poll() bool {
	t.suppression.begin(t)
	return t.pass()
}

// CanPoll reports whether [Transport.Poll] reads sockets. It does not where all of them are
// the caller's ([TransportConfig.Conns]), or where the system has no nonblocking read.
func (t *Transport) CanPoll() bool { return t.sockets().canPoll }

// pass is Poll that leaves a reader that spins in its place, see suppression.replaceReader.
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

// pollAsSender is one pass over the sockets by a sender. The sender will soon make another
// one, so it turns suppression on: acknowledgements wake no reader meanwhile. One goroutine
// at a time makes the pass, which bounds the recursion of upcalls that send.
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

// readAll is one pass over the sockets that does not count for suppression: it is made once,
// before timers run.
func (t *Transport) readAll() {
	for _, s := range t.sockets().list {
		if s.conn.CanPoll() {
			s.poll(true)
		}
	}
}

// DefaultBusyPoll is the default of TransportConfig.BusyPoll: 50 µs, about what it takes to
// wake a goroutine on a processor that sleeps.
const DefaultBusyPoll = 50 * time.Microsecond

// SetBusyRead bounds the busy polling of the goroutines that read the sockets: a reader
// keeps polling after a batch for at most limit, if the next datagram is expected sooner than
// a wake-up would take. That serves a peer that reads memory here or is answered by an
// upcall, with no goroutine of the program waiting. The default is TransportConfig.BusyPoll;
// a limit of 0 or less turns it off. It may be called at any time.
func (t *Transport) SetBusyRead(limit time.Duration) {
	t.server.SetLimit(limit)
}

// SetPollLease sets for how long the goroutines that read the sockets stay asleep after the last
// [Transport.Poll]: what comes then is received by the next one, or after the lease, twice that at the most.
// By default polls put them to sleep only if they are frequent, and the lease is 200 µs, and grows while
// polling lasts. A longer one suits processes that outnumber the processors, where a reader takes
// the processor from one that computes. It may be called at any time; 0, and what is shorter than the
// default, restores it.
func (t *Transport) SetPollLease(d time.Duration) { t.suppression.setShortest(d) }

// A Wait is a wait for something that an upcall will do. It begins with adaptive spinning:
// the waiting goroutine polls the sockets itself where that has made waits shorter.
type Wait struct {
	t *Transport
	w poll.Wait
}

// BeginWait notes the begin of a wait and decides whether it spins. It does not block. The
// caller then calls [Wait.Poll] once, parks if that reports false, and calls [Wait.End].
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

// End notes that what was waited for has come: the time that it took decides whether later
// waits spin. A wait that was given up needs no End.
func (w Wait) End() {
	if w.w.Counts() {
		w.w.End(int64(w.t.now()))
	}
}

// Poll polls the sockets until ready reports true, and reports whether it did. It makes
// upcalls. It gives up when the spin budget, see [TransportConfig.BusyPoll], has passed without
// a datagram, or sixteen times the budget in all; it looks at no context, so ready should also
// report true when a context is done. It returns at once where polling is off or does not pay,
// or each processor of the process has a goroutine that spins. A goroutine calls it once before
// it parks.
func (w Wait) Poll(ready func() bool) bool {
	ok := w.poll(ready)
	if !ok && w.w.Budget > 0 {
		w.t.resumeReaders()
	}
	return ok
}

// poll is Poll for a caller that resumes the readers itself before it parks.
func (w Wait) poll(ready func() bool) bool {
	t := w.t
	if w.w.Budget == 0 || !t.spinning.Enter() {
		return false
	}
	defer t.spinning.Leave()
	return t.loop.Spin(&w.w, ready, nil)
}

const (
	// yieldEvery is after how many polls a spinning goroutine lets others run, and yieldFull
	// where each processor has one that spins.
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

// over reports whether the budget of the spin is used up. If came is true something came,
// though not what is waited for, and renews it first.
func (w *Wait) over(came bool) bool {
	now := int64(w.t.now())
	if came {
		w.w.Renew(now)
	}
	return w.w.Over(now)
}
