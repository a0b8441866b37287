package sctp

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// leadership is Leader/Followers: one waiting goroutine, the leader, reads the sockets
// itself, so a datagram wakes the consumer directly. A reader would have to wake it in turn,
// on another thread, which costs a second wake-up for each batch.
//
// One goroutine of a transport leads at a time, while no other one waits, and only where
// datagrams come often; otherwise the readers serve. It is off at GOMAXPROCS=1: there is no
// cross-thread wake-up to save.
type leadership struct {
	t          *Transport
	poller     *udpio.Poller // nil: no goroutine can lead
	taken      atomic.Bool   // a goroutine leads, or is about to
	parked     atomic.Int32  // goroutines that wait without leading
	shortWaits atomic.Int32  // consecutive short waits, at most leaderAfter; see noteWait

	step     func() bool                        // receive, as a func value that is made once
	gap      poll.Wait                          // the wait for datagrams since the leader last read some
	pollMore func(spins bool) (came, over bool) // pollMoreOnce, made once

	mu            sync.Mutex
	w             *waiter         // of the leader; guarded by mu, written by the leader
	stop, expired <-chan struct{} // end the wait of the leader; guarded by mu
	demoted       atomic.Bool     // changed under mu
}

const (
	// leaderAfter is how many consecutive short waits make the next one lead.
	leaderAfter = 2
	// maxShortWait is the longest wait that still counts as short, 200 µs. A leader for
	// which no datagram comes for a tick, which is as long, is demoted.
	maxShortWait = clock.Time(minTick)
)

// init opens the poller, if the system has one for all sockets.
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

// add adds a socket that leaders read.
func (l *leadership) add(c udpio.Conn) {
	if l.poller != nil {
		l.poller.Add(c)
	}
}

// stopAll ends leadership with the transport. A leader that waits returns.
func (l *leadership) stopAll() {
	if l.poller != nil {
		l.poller.Close()
	}
}

// leaders counts the goroutines of the process that lead. A leader blocks in a system call
// that the runtime does not know of and keeps its processor meanwhile, so there are fewer
// leaders than processors.
var leaders atomic.Int32

// waitOn blocks until w is woken, and returns nil, or until one of the channels is closed,
// and returns errStopped or errExpired. Meanwhile the calling goroutine may lead: it reads
// the sockets and makes upcalls.
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

// noteWait decides by the duration of a wait whether the next one may lead. A wait that is
// longer than maxShortWait counts as short, too, if the readers read at least once per
// maxShortWait meanwhile: receiving 1 MiB takes longer, but keeps a leader busy.
func (l *leadership) noteWait(took clock.Time, reads uint64) {
	if took/maxShortWait > clock.Time(reads) {
		l.shortWaits.Store(0)
	} else if n := l.shortWaits.Load(); n < leaderAfter {
		l.shortWaits.Store(n + 1)
	}
}

// run makes the calling goroutine the leader until w is woken or the leader is demoted. It
// reports whether w was woken.
func (l *leadership) run(w *waiter, stop, expired <-chan struct{}) bool {
	l.mu.Lock()
	l.w, l.stop, l.expired = w, stop, expired
	l.mu.Unlock()
	l.t.suppression.readerPolls.Store(false)
	l.t.suppression.set(l.t, true) // after w is set, which the tick looks at
	l.t.suppression.restartTicks(l.t)
	l.t.server.Yield(l.t.nanoseconds())
	for _, s := range l.t.sockets().list {
		s.processDeferredSACK()
	}
	w.leading.Store(true)
	w.parkedLeader.Store(l)
	if len(w.ch) == 0 { // otherwise it was woken before others could see that it leads
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

// receive reads the sockets until they are empty, and reports whether the leader was
// woken. If not, the leader is about to block in the poller.
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
		l.t.server.BeforeBlock(l.t.nanoseconds()) // goroutines that it woke may need its processor
		w.parkedLeader.Store(l)
		return len(w.ch) > 0
	}
}

// read makes one pass over the sockets. It waits for a socket that another goroutine reads.
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

// pollMoreOnce is read that also reports whether the leader was woken or demoted.
func (l *leadership) pollMoreOnce(bool) (came, over bool) {
	came = l.read()
	return came, len(l.w.ch) > 0 || l.demoted.Load()
}

// demote ends the lead of w if w leads, or of any leader if w is nil. It does not block.
func (l *leadership) demote(w *waiter) {
	l.mu.Lock()
	if l.w != nil && (w == nil || l.w == w) && !l.demoted.Load() {
		l.demoted.Store(true)
		l.poller.Kick()
	}
	l.mu.Unlock()
}

// tick demotes the leader if its wait has been stopped or has expired, or if idle is true:
// no datagram came since the last tick.
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
