package sctp

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
)

// Poll makes one pass over the sockets without blocking: it receives what is
// there, dispatches and answers it, and reports whether there was anything.
// Goroutines that wait for something an upcall will do call it in a loop
// before they park. It always reports false where sockets cannot be polled.
func (t *Transport) Poll() bool {
	work := false
	set := t.sockets()
	for _, s := range set.list {
		if s.conn.CanPoll() && s.poll() {
			work = true
		}
	}
	if set.canPoll {
		t.polling.note(t)
	}
	return work
}

// readAll is one pass over the sockets that says nothing about whether polling
// goes on.
func (t *Transport) readAll() {
	for _, s := range t.sockets().list {
		if s.conn.CanPoll() {
			s.poll()
		}
	}
}

const (
	// pollsBeforeQuiet is how many polls have to follow one another at an average
	// distance of at most pollGap before the readers of the sockets are no longer
	// woken for datagrams: a wake-up that comes to nothing, or takes a datagram
	// to another thread, costs more than a poll.
	pollsBeforeQuiet = 16
	pollGap          = 50 * time.Microsecond
	// quietTick is how often it is looked whether polling goes on. It bounds how
	// long datagrams wait after it ended.
	quietTick = 200 * time.Microsecond
)

// polling keeps the readers asleep while other goroutines poll the sockets.
type polling struct {
	calls  atomic.Uint32
	recent atomic.Uint32 // calls since mark
	mark   atomic.Int64  // a core.Time
	quiet  atomic.Bool   // the readers are not woken

	mu    sync.Mutex
	seen  uint32      // calls at the last tick; guarded by mu
	timer *time.Timer // guarded by mu
	over  bool        // the transport was closed; guarded by mu
}

// note takes in one call of Poll.
func (p *polling) note(t *Transport) {
	p.calls.Add(1)
	if p.quiet.Load() || p.recent.Add(1) < pollsBeforeQuiet {
		return
	}
	p.recent.Store(0)
	now := int64(t.now())
	if now-p.mark.Swap(now) <= pollsBeforeQuiet*int64(pollGap) {
		p.setQuiet(t, true)
	}
}

func (p *polling) setQuiet(t *Transport, on bool) {
	p.mu.Lock()
	changed := p.quiet.Load() != on && !(on && p.over)
	if changed {
		p.change(t, on)
	}
	p.mu.Unlock()
	if changed && !on {
		t.Poll() // what came before the readers were told to look again
	}
}

// change is called with mu held.
func (p *polling) change(t *Transport, on bool) {
	p.recent.Store(0)
	p.quiet.Store(on)
	for _, s := range t.sockets().list {
		s.conn.Polled(on)
	}
	switch {
	case !on:
		p.timer.Stop()
	case p.timer == nil:
		p.seen = p.calls.Load()
		p.timer = time.AfterFunc(quietTick, func() { p.tick(t) })
	default:
		p.seen = p.calls.Load()
		p.timer.Reset(quietTick)
	}
}

// tick lets the readers be woken again if nobody polled since the last one.
func (p *polling) tick(t *Transport) {
	p.mu.Lock()
	if !p.quiet.Load() || p.over {
		p.mu.Unlock()
		return
	}
	n := p.calls.Load()
	t.lead.check(n == p.seen)
	if n != p.seen {
		p.seen = n
		p.timer.Reset(quietTick)
		p.mu.Unlock()
		return
	}
	p.change(t, false)
	p.mu.Unlock()
	t.Poll()
}

// readersWake is called before the caller parks: a reader has to take over,
// unless somebody leads.
func (t *Transport) readersWake() {
	if t.polling.quiet.Load() && !t.lead.busy.Load() && t.pollers.Load() == 0 {
		t.polling.setQuiet(t, false)
	}
}

// stop ends it with the transport.
func (p *polling) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// spinBudget adapts how long waiting goroutines poll: a wait that polling did
// not end halves it, one that it did end doubles it, up to BusyPoll.
type spinBudget struct {
	limit, now atomic.Int64
}

const minSpinShare = 16 // the budget stays above this fraction of its limit

func (s *spinBudget) init(limit time.Duration) {
	s.limit.Store(int64(limit))
	s.now.Store(int64(limit))
}

func (s *spinBudget) adapt(useful bool) {
	limit, now := s.limit.Load(), s.now.Load()
	if useful {
		now = min(2*now, limit)
	} else {
		now = max(now/2, limit/minSpinShare)
	}
	s.now.Store(now)
}

// startSpin reports how long the caller may poll, 0 for not at all; after a
// positive answer it must call endSpin.
func (t *Transport) startSpin() core.Time {
	if t.cfg.BusyPoll <= 0 || !t.sockets().canPoll {
		return 0
	}
	t.pollers.Add(1)
	if int(spinners.Add(1)) > runtime.GOMAXPROCS(0) {
		spinners.Add(-1)
		t.pollers.Add(-1)
		return 0
	}
	return core.Time(t.spinning.now.Load())
}

// spinners counts the goroutines of the process that spin: each takes a
// processor.
var spinners atomic.Int32

// yieldEvery is after how many polls a spinning goroutine lets others run.
const yieldEvery = 8

// spinOnce is one turn of a goroutine that spins, the ith.
func (t *Transport) spinOnce(i int) {
	t.Poll()
	if i%yieldEvery == yieldEvery-1 {
		runtime.Gosched()
	}
}

// endSpin tells whether the wait is over. If not, the caller is going to park and
// calls readersWake first.
func (t *Transport) endSpin(useful bool) {
	spinners.Add(-1)
	t.pollers.Add(-1)
	t.spinning.adapt(useful)
}
