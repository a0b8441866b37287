package sctp

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// lead lets a goroutine that waits take the place of the readers of the
// sockets: datagrams wake it rather than a reader that would have to wake it in
// turn, on another thread. One goroutine of a transport leads at a time, while
// no other one waits, and only where datagrams come often: else the readers serve.
// With one processor for the process a reader wakes nobody on another thread, and what
// a lead begins and ends with would cost more.
type leadership struct {
	t          *Transport
	poller     *udpio.Poller // nil: nobody can
	taken      atomic.Bool   // somebody leads
	parked     atomic.Int32  // goroutines that wait otherwise
	shortWaits atomic.Int32  // how many waits in a row were short, or busy, up to leaderAfter

	step     func() bool                        // tries, made once
	gap      poll.Wait                          // for datagrams, since it read some
	pollMore func(spins bool) (came, over bool) // pollMoreOnce, made once

	mu            sync.Mutex
	w             *waiter         // of the leader; guarded by mu, written by the leader
	stop, expired <-chan struct{} // guarded by mu
	demoted       atomic.Bool     // changed under mu
}

const (
	// leaderAfter is how many short waits precede the first lead.
	leaderAfter = 2
	// maxShortWait is what a short wait is, and a busy one per time that a reader read. A
	// leader that finds nothing to do for longer parks as others do.
	maxShortWait = clock.Time(minTick)
)

func (l *leadership) init(t *Transport) {
	l.t = t
	p, err := udpio.NewPoller()
	if err != nil {
		return
	}
	for _, s := range t.sockets().list {
		if !p.Add(s.conn) {
			p.Close()
			return
		}
	}
	l.poller = p
	l.step, l.pollMore = l.receive, l.pollMoreOnce
}

// add makes a socket one of those that the leader reads.
func (l *leadership) add(c udpio.Conn) {
	if l.poller != nil {
		l.poller.Add(c)
	}
}

// stopAll ends it with the transport.
func (l *leadership) stopAll() {
	if l.poller != nil {
		l.poller.Close()
	}
}

// leaders counts the goroutines of the process that lead. One in the system keeps its
// processor from others until the runtime's monitor takes it away, so one is left to them.
var leaders atomic.Int32

// waitOn parks until w is woken or one of the channels is closed.
func (t *Transport) waitOn(w *waiter, stop, expired <-chan struct{}) error {
	l := &t.leader
	woken := false
	if l.poller == nil {
		t.resumeReaders()
		return wait(w, stop, expired)
	}
	if l.shortWaits.Load() >= leaderAfter && l.parked.Load() == 0 && l.taken.CompareAndSwap(false, true) {
		if int(leaders.Add(1)) < poll.Procs() {
			woken = l.run(w, stop, expired)
		} else {
			l.taken.Store(false)
			poll.RefreshProcs() // for the next one
		}
		leaders.Add(-1)
		if woken {
			return nil
		}
	}
	l.parked.Add(1)
	t.resumeReaders()
	began, reads := t.now(), t.count.reads.Load()
	err := wait(w, stop, expired)
	l.noteWait(t.now()-began, t.count.reads.Load()-reads)
	l.parked.Add(-1)
	return err
}

// waited takes in that a wait took so long, while the readers read so many times.
// One who would have been woken by datagrams as often as a short wait wants it may
// lead next time, however much had to come: 1 MiB takes longer than a short wait.
func (l *leadership) noteWait(took clock.Time, reads uint64) {
	if took/maxShortWait > clock.Time(reads) {
		l.shortWaits.Store(0)
	} else if n := l.shortWaits.Load(); n < leaderAfter {
		l.shortWaits.Store(n + 1)
	}
}

// lead reads the sockets until w is woken, and reports whether it was.
func (l *leadership) run(w *waiter, stop, expired <-chan struct{}) bool {
	l.mu.Lock()
	l.w, l.stop, l.expired = w, stop, expired
	l.mu.Unlock()
	l.t.suppression.readerPolls.Store(false)
	l.t.suppression.set(l.t, true) // with w noted, or the tick might miss it
	l.t.suppression.restartTicks(l.t)
	l.t.server.Yield(l.t.nanoseconds())
	for _, s := range l.t.sockets().list {
		s.processDeferredSACK()
	}
	w.leading.Store(true)
	w.parkedLeader.Store(l)
	if len(w.ch) == 0 { // or it was woken before anybody knew that it leads
		l.poller.Wait(l.step)
	}
	w.parkedLeader.Store(nil)
	w.leading.Store(false)
	l.mu.Lock()
	l.w, l.stop, l.expired = nil, nil, nil
	if l.demoted.Load() {
		l.demoted.Store(false)
		l.poller.Reset()
	}
	l.mu.Unlock()
	l.gap = poll.Wait{}
	woken := false
	select {
	case <-w.ch:
		woken = true
	default:
		l.shortWaits.Store(0)
	}
	l.taken.Store(false)
	if l.parked.Load() > 0 {
		l.t.resumeReaders()
	}
	return woken
}

// tries reads what there is and reports whether the leader was woken. If not it
// is about to park.
func (l *leadership) receive() bool {
	w := l.w
	w.parkedLeader.Store(nil)
	for {
		worked := l.read()
		if len(w.ch) > 0 {
			return true
		}
		if worked {
			if l.gap = l.t.server.PollForMore(l.gap, math.MaxInt64, l.pollMore); l.demoted.Load() {
				return false
			}
			continue
		}
		l.t.server.BeforeBlock(l.t.nanoseconds()) // first those who were woken
		w.parkedLeader.Store(l)
		return len(w.ch) > 0
	}
}

// read is one pass over the sockets.
func (l *leadership) read() (worked bool) {
	for _, s := range l.t.sockets().list {
		if s.read() {
			worked = true
		}
	}
	if worked {
		l.t.suppression.polls.Add(1)
	}
	return worked
}

// pollMoreOnce is read that also tells whether the leader was woken, or its lead is over.
func (l *leadership) pollMoreOnce(bool) (came, over bool) {
	came = l.read()
	return came, len(l.w.ch) > 0 || l.demoted.Load()
}

// kick ends the lead of w, if it is w that leads; nil stands for any.
func (l *leadership) demote(w *waiter) {
	l.mu.Lock()
	if l.w != nil && (w == nil || l.w == w) && !l.demoted.Load() {
		l.demoted.Store(true)
		l.poller.Kick()
	}
	l.mu.Unlock()
}

// check ends a lead whose time is up, or any if idle.
func (l *leadership) tick(idle bool) {
	l.mu.Lock()
	stop, expired := l.stop, l.expired
	l.mu.Unlock()
	select {
	case <-stop:
		idle = true
	case <-expired:
		idle = true
	default:
	}
	if idle {
		l.demote(nil)
	}
}
