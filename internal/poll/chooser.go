// Package spin decides, from how long waits took, whether goroutines that wait
// poll before they park.
//
// An answer that comes within the polling costs no wake-up. On a machine with
// other work to do polling loses: the scheduler favours who sleeps. So both ways
// are tried, and the one whose waits turn out shorter is taken for most of them.
package poll

import (
	"math"
	"sync/atomic"
	"time"
)

// Chooser chooses between the two ways of waiting. Its methods may be called by
// several goroutines at a time; all times are nanoseconds of one clock.
type Chooser struct {
	max                 int64 // length of a spin; 0: never spin
	extended            int64 // length of one while waits are short
	waits               atomic.Uint32
	unmeasured          atomic.Uint32 // waits that Start was asked for while they were
	nextExploration     atomic.Uint32 // which wait tries the other way
	explorationInterval atomic.Uint32 // waits between those that do
	spinCost            atomic.Int64  // how long waits take that begin with a spin
	parkCost            atomic.Int64  // how long those take that do not
	parked              atomic.Bool   // parkCost was measured
	always              bool          // all waits spin
}

const (
	// explorationBudget bounds the spins that try whether spinning pays: where it does not,
	// they take the processor from others.
	explorationBudget = int64(time.Millisecond)
	// minExplorationInterval is how many waits there are to one that tries the other way. While
	// most spin, the number doubles up to maxExplorationInterval with each after which parking still
	// costs more: a single one may be short by chance. While most park, explorationRun in a row
	// try after twice as many, because they are short only if the other side spins
	// meanwhile, too.
	minExplorationInterval = 16
	maxExplorationInterval = 4096
	explorationRun         = 3
	// fastWait is below what waits that spin are quick: it is not tried whether parking is
	// better. A wake-up is hardly faster, and costs both sides more than its time: who has
	// slept wakes up on the processor of who wakes it, or on one that slept, too.
	fastWait = int64(25 * time.Microsecond)
	// Where waits that spin take less than a quarter of it, one may spin for patience times
	// max, up to maxExtendedBudget: a long one is the exception there, because the other side was
	// interrupted, and goes on soon.
	extensionFactor   = 8
	maxExtendedBudget = int64(400 * time.Microsecond)
	// measureEvery is how many waits there are to one that is measured while they spin
	// and are that quick: to look at the clock twice takes a twentieth of such a wait. It
	// is odd so that programs with two, four or eight waits in a step do not have the
	// same one measured each time.
	measureEvery = 7
	// initialParkCost is what parking is taken to cost before it was tried.
	initialParkCost = int64(50 * time.Microsecond)
	// maxCostStep bounds what one wait adds to a cost: twice the cost and this count
	// most, so that the way of waiting does not change with a single long wait.
	maxCostStep = int64(20 * time.Microsecond)
	// maxRenewals bounds a spin that goes on because something comes, in multiples of its
	// length: who spins looks at nothing else.
	maxRenewals = 16
	// spinGain is the least part of its length by which a wait must be shorter for
	// spinning to be worth the processor.
	spinGain = 16
	// costShare is the share of the latest wait in spinCost and parkCost.
	costShare = 8
	// maxCostFactor, in multiples of the longest spin, is what longer waits count
	// as: they tell nothing.
	maxCostFactor = 4
)

// Init sets how long a wait may spin, not at all if limit is 0 or less. No wait is
// going on.
func (c *Chooser) Init(limit time.Duration) {
	c.max = min(max(int64(limit), 0), math.MaxInt64/maxRenewals) // which no sum exceeds
	c.extended = c.max
	c.parkCost.Store(min(c.max, initialParkCost))
	c.nextExploration.Store(minExplorationInterval)
	c.explorationInterval.Store(minExplorationInterval)
	c.always = false
}

// Patiently is Init for waits that somebody makes who has nothing else to do: where they
// are short a long one may spin for longer than limit, see patience.
func (c *Chooser) InitExtending(limit time.Duration) {
	c.Init(limit)
	c.extended = max(c.max, min(extensionFactor*c.max, maxExtendedBudget))
}

// Always is Init for where a poll costs next to nothing: all waits spin, for up to
// limit, and none is measured.
func (c *Chooser) Always(limit time.Duration) {
	c.Init(limit)
	c.always = true
}

// Max returns how long a wait may spin.
func (c *Chooser) Max() time.Duration { return time.Duration(c.max) }

// Costs returns how long waits take that spin, and that do not.
func (c *Chooser) Costs() (spin, park time.Duration) {
	return time.Duration(c.spinCost.Load()), time.Duration(c.parkCost.Load())
}

// Wait is a wait that has begun. The zero Wait is one that may not spin and does
// not count.
type Wait struct {
	at        int64
	since     int64    // of the spin: when something came last; 0: nothing did
	Budget    int64    // how long it may spin; 0: not at all
	of        *Chooser // that it tells how long it took; nil: none
	exploring bool     // it is not the way that most waits take
	unstarted bool     // at is not set yet
}

// Counts reports whether End takes in how long the wait took.
func (w Wait) Counts() bool { return w.of != nil }

// Start returns a wait that is not measured, if all are so, or most because they are
// quick: it begins when Over is called first, so that a short one need not look at a
// clock. As Over keeps that in the Wait, it is to be called on the same one throughout.
func (c *Chooser) Start() (w Wait, ok bool) {
	if !c.always {
		cost := c.spinCost.Load()
		if cost == 0 || cost >= fastWait || c.unmeasured.Add(1)%measureEvery == 0 {
			return w, false
		}
		c.waits.Add(1)
	}
	return Wait{Budget: c.budget(), unstarted: true}, true
}

// Begin notes the begin of a wait and chooses whether to spin.
func (c *Chooser) Begin(now int64) (w Wait) {
	if c.max == 0 {
		return w
	}
	if c.always {
		return Wait{at: now, Budget: c.max}
	}
	cost := c.spinCost.Load()
	spin := cost < fastWait || cost+cost/spinGain < c.parkCost.Load()
	if n := c.waits.Add(1); int32(n-c.nextExploration.Load()) >= 0 {
		if spin || int32(n-c.nextExploration.Load()) >= explorationRun-1 {
			c.nextExploration.Store(n + c.explorationInterval.Load())
		}
		if !spin || cost >= fastWait {
			spin, w.exploring = !spin, true
		}
	}
	w.at, w.of = now, c
	switch {
	case spin && w.exploring:
		w.Budget = min(c.max, explorationBudget)
	case spin:
		w.Budget = c.budget()
	}
	return w
}

// length returns how long a wait may spin that does not try.
func (c *Chooser) budget() int64 {
	if cost := c.spinCost.Load(); 0 < cost && cost < c.extended/4 {
		return c.extended
	}
	return c.max
}

// Over reports whether the time for the spin of w is up.
func (w *Wait) Over(now int64) bool {
	if w.unstarted {
		w.at, w.unstarted = now, false
	}
	return now-max(w.at, w.since) > w.Budget || now-w.at > maxRenewals*w.Budget
}

// Came notes that the spin of w found something, if not what is waited for: as much time as
// it may take is left from now on, up to maxRenewals times that in all. One that tries whether
// spinning pays gets no more.
func (w *Wait) Renew(now int64) {
	if !w.exploring {
		w.since = now
	}
}

// End notes that what was waited for is there. It does nothing if w does not count.
func (w Wait) End(now int64) {
	c := w.of
	if c == nil {
		return
	}
	cost, rival := &c.parkCost, &c.spinCost
	if w.Budget > 0 {
		cost, rival = rival, cost
	}
	// Waits at the same time may overwrite each other's share: no matter.
	old, took := cost.Load(), min(now-w.at, maxCostFactor*c.max)
	if w.Budget == 0 && !c.parked.Load() {
		c.parked.Store(true)
		old = took
	}
	cost.Store(old + (min(took, 2*old+maxCostStep)-old)/costShare)
	if w.exploring {
		gap := uint32(minExplorationInterval)
		switch {
		case w.Budget > 0:
			gap = 2 * minExplorationInterval
		case cost.Load() > rival.Load():
			gap = min(2*c.explorationInterval.Load(), maxExplorationInterval)
			c.nextExploration.Store(c.waits.Load() + gap)
		}
		c.explorationInterval.Store(gap)
	}
}
